import type { Patch } from './patch.ts'

// What a test plants at a place of the program's source: a death, as if somebody had sent SIGKILL in that instant, or a
// pause in which the test does something.

export const DIE = "process.kill(process.pid, 'SIGKILL')"

/** Asks this address in front of a statement, and goes on with its answer.. */
export function asksBefore(file: string, statement: string, url: string, when = 'true'): Patch {
  return { file, find: statement, replace: `if (${when}) await fetch('${url}'); ${statement}` }
}

/** Writes a line of the log, with this message, in front of a statement. */
export function saysBefore(file: string, statement: string, msg: string, when = 'true'): Patch {
  return {
    file,
    find: statement,
    replace: `if (${when}) console.error('${JSON.stringify({ msg })}'); ${statement}`,
  }
}

/** Stands still for so long in front of a statement, as if the process had been put aside there by the system. */
export function dawdlesBefore(file: string, statement: string, ms: number): Patch {
  const still = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms})`
  return { file, find: statement, replace: `${still}; ${statement}` }
}
