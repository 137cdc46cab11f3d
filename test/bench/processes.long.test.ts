import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { tempFolder } from '../helpers/temp-folder.ts'
import { createMirror } from './mirrors.ts'
import { measure, whileServing } from './processes.ts'
import { race } from './rounds.ts'

const BARE_LOOP = path.join(import.meta.dirname, 'bare-loop.ts')
const PROGRAM = path.resolve(import.meta.dirname, '../../src/bin.js')

describe('a measured process', () => {
  it('has the peak of its memory', async () => {
    const peakIn = tempFolder()

    const small = await measure(['-e', 'console.log(1)'], { peakIn })
    const large = await measure(['-e', 'Buffer.alloc(100_000_000, 1)'], { peakIn })

    expect(small.stdout).toBe('1\n')
    expect(large.peakKb - small.peakKb).toBeGreaterThan(80_000)
  })

  it('that fails is an error', async () => {
    await expect(measure(['-e', 'console.error("no luck"); process.exit(3)'])).rejects.toThrow(
      /ended with 3:\nno luck/,
    )
  })
})

describe('the server of pages', () => {
  it('gives the bare loops the whole list, with and without a file', async () => {
    const file = path.join(tempFolder(), 'naive.db')

    const read = await whileServing({ orders: 60, latencyMs: 0 }, ({ list }) =>
      Promise.all([measure([BARE_LOOP, list]), measure([BARE_LOOP, list, file])]),
    )

    expect(read.map(({ stdout }) => stdout)).toEqual(['60\n', '60\n'])
  })

  it('gives a sync each order once, and an error if it expects more', async () => {
    const sync = whileServing({ orders: 60, latencyMs: 0 }, ({ url }) =>
      createMirror({ program: PROGRAM, folder: tempFolder(), url }).sync(61),
    )

    await expect(sync).rejects.toThrow('the mirror holds 60 orders instead of 61')
  })
})

it('contenders run in turn, one after another, and keep their figures by round', async () => {
  const ran: string[] = []
  let running = 0
  const contender = (name: string) => async () => {
    expect(running++).toBe(0)
    await Promise.resolve()
    running--
    return { ms: ran.push(name), peakKb: 0, stdout: '' }
  }
  const report = (words: string) => void ran.push(words.trim())

  const results = await race({ rounds: 2, report }, { a: contender('a'), b: contender('b') })

  expect(ran).toEqual(['round 1 of 2', 'a', 'b', 'round 2 of 2', 'a', 'b'])
  expect(results.b?.map(({ ms }) => ms)).toEqual([3, 6])
})
