import process from 'node:process'
import { kindNamed } from './kinds.ts'
import { type History, live } from './measure.ts'

export type Lived = History[]

/** Plays the histories of its command line: the kind's name, first seed, end and step. */
function liveThrough(name: string, from: number, end: number, step: number): Lived {
  const kind = kindNamed(name)
  const histories: Lived = []
  for (let seed = from; seed < end; seed += step) histories.push(live(kind, seed))
  return histories
}

const [name = '', ...numbers] = process.argv.slice(2)
const [from = 0, end = 0, step = 1] = numbers.map(Number)
process.stdout.write(JSON.stringify(liveThrough(name, from, end, step)))
