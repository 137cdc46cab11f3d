import fs from 'node:fs'
import { watchEdges } from './edges.ts'

// To be named to Node with --import (faults.ts): what goes wrong with a process, or is told of it, at a statement of the driver or
// a call of node:fs. Knows nothing of the program. A thread has a count of its own.

export interface Fault {
  /** A regular expression: the statement (`^INSERT INTO sync_pages`), or the call (`^fs.renameSync .*copy\.db$`). */
  at: string
  /** Only from this statement or call on. */
  from?: string
  /** Which of those that fit; the first. */
  nth?: number
  when?: 'before' | 'after'
  /**
   * `die`: by SIGKILL. A line of the log with this message; then, if a file is named, the thread stands still until there is such a
   * file, and if milliseconds, for so long. `throws`: an error with these fields, where nobody catches it.
   */
  does: 'die' | { says?: string; until?: string; forMs?: number } | { throws: object }
}

const faults = JSON.parse(process.env.FAULTS ?? '[]') as Fault[]

for (const { at, from, nth = 1, when = 'before', does } of faults) {
  const [pattern, begin] = [new RegExp(at), from === undefined ? null : new RegExp(from)]
  let hasBegun = begin === null
  let count = 0
  watchEdges({
    [when]: ({ what }: { what: string }) => {
      hasBegun ||= begin?.test(what) ?? true
      if (hasBegun && pattern.test(what) && ++count === nth) happen(does)
    },
  })
}

function happen(does: Fault['does']): void {
  if (does === 'die') process.kill(process.pid, 'SIGKILL')
  else if ('throws' in does) {
    setImmediate(() => {
      throw Object.assign(new Error('planted'), does.throws)
    })
  } else {
    const { says, until, forMs = 0 } = does
    if (says !== undefined) fs.writeSync(2, `${JSON.stringify({ msg: says })}\n`)
    stand(forMs)
    if (until !== undefined) standUntil(until)
  }
}

function standUntil(file: string): void {
  while (!fs.existsSync(file)) stand(10)
}

function stand(ms: number): void {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
