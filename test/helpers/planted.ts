import type { Patch } from './patch.ts'

// What a test plants at a place of the program's source: a death, as if somebody had sent SIGKILL in that instant, or a
// pause in which the test does something.

export const DIE = "process.kill(process.pid, 'SIGKILL')"

/** Dies in front of a statement. `when`: an expression of the source's own names. */
export function dyingBefore(file: string, statement: string, when = 'true'): Patch {
  return { file, find: statement, replace: `if (${when}) ${DIE}; ${statement}` }
}

/** Dies behind a statement that is given up to its end. */
export function dyingAfter(file: string, statement: string, when = 'true'): Patch {
  return { file, find: statement, replace: `{ ${statement}; if (${when}) ${DIE} }` }
}

/** Dies as soon as an expression has its value, before anybody else has it. */
export function dyingWith(file: string, expression: string): Patch {
  return { file, find: expression, replace: `((value) => { ${DIE}; return value })(${expression})` }
}

/** Asks this address in front of a statement, and goes on with its answer. `when` as in dyingBefore. */
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

/** Blocks the thread in front of a statement until there is such a file. */
export function pausesBefore(file: string, statement: string, released: string): Patch {
  const isReleased = `process.getBuiltinModule('node:fs').existsSync(${JSON.stringify(released)})`
  const pause = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)'
  return { file, find: statement, replace: `while (!${isReleased}) ${pause}; ${statement}` }
}

/** Another number in a constant. */
export function withConstant(file: string, name: string, value: number): Patch {
  return { file, find: `const ${name} = `, replace: `const ${name} = ${value} || ` }
}

/** Long work on a small mirror takes several batches, too. */
export const SMALL_BATCHES: readonly Patch[] = [
  withConstant('src/store/sqlite/walks/forget.ts', 'MOST_ROWS', 7),
  withConstant('src/store/sqlite/tables/rebuild.ts', 'MOST_ROWS', 7),
  withConstant('src/store/sqlite/walks/prune.ts', 'PRUNED_AT_ONCE', 2),
]
