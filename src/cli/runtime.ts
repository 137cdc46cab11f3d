import type { Writable } from 'node:stream'

/** A stream that may be a terminal. */
export interface Output extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** All that the program takes from the process, the clock and chance. Made in main.ts and nowhere else. */
export interface Runtime {
  env: Record<string, string | undefined>
  cwd: string
  pid: number
  stdout: Output
  stderr: Output
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP; its reason is the signal's name. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  now: () => number
  /** Rejects as soon as the signal is aborted. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Resolves when all that was begun before has had its turn. */
  turn: () => Promise<void>
  random: () => number
  /** Runs `task` every so many milliseconds until the function that is returned is called. */
  every: (ms: number, task: () => void) => () => void
  newToken: () => string
  /** From now on a signal ends the process at once: for commands that compute long and write nothing. */
  dieOnSignal: () => void
}
