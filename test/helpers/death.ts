import type { Patch } from './patch.ts'

// Places in the program's source at which a process is to kill itself, as if somebody had sent SIGKILL in that instant.

const DIE = "process.kill(process.pid, 'SIGKILL')"

/** Dies in front of a statement. `when`: an expression of the source's own names. */
export function dyingBefore(file: string, statement: string, when = 'true'): Patch {
  return { file, find: statement, replace: `if (${when}) ${DIE}; ${statement}` }
}

/** Dies behind a statement that is given up to its end. */
export function dyingAfter(file: string, statement: string, when = 'true'): Patch {
  return { file, find: statement, replace: `${statement}; if (${when}) ${DIE}` }
}

/** Dies as soon as an expression has its value, before anybody else has it. */
export function dyingWith(file: string, expression: string): Patch {
  return { file, find: expression, replace: `((value) => { ${DIE}; return value })(${expression})` }
}
