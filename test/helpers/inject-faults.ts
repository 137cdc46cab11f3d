import fs from 'node:fs'
import { watchEdges } from './edges.ts'

// To be named to Node with --import (faultsOf): what goes wrong with a process, or is told of it, at a statement.

export interface Fault {
  /** A regular expression: `^INSERT INTO sync_pages`. It happens at the first one that fits. */
  at: string
  /** A line of the log with this message, and nothing more from then on; or an error with these fields, where nobody catches it. */
  does: { saysAndStands: string } | { throws: object }
}

const faults = JSON.parse(process.env.FAULTS ?? '[]') as Fault[]

for (const { at, does } of faults) {
  const pattern = new RegExp(at)
  const end = watchEdges(({ what }) => {
    if (!pattern.test(what)) return
    end()
    happen(does)
  })
}

function happen(does: Fault['does']): void {
  if ('throws' in does) {
    setImmediate(() => {
      throw Object.assign(new Error('planted'), does.throws)
    })
  } else {
    fs.writeSync(2, `${JSON.stringify({ msg: does.saysAndStands })}\n`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }
}
