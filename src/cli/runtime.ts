import type { Readable, Writable } from 'node:stream'

/** A stream that may be a terminal. */
export interface Output extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** All that the program takes from the process, the clock and chance. Only main.ts makes one. */
export interface Runtime {
  env: Record<string, string | undefined>
  cwd: string
  /** As `process-name.ts` makes it: no other process has it, on any machine. */
  processName: string
  /** Whether the process of this name lives; null where nobody here can know. */
  isAlive: (name: string) => boolean | null
  /** Node opens standard input on first use. */
  stdin: () => Readable
  stdout: Output
  stderr: Output
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP; its reason is the signal's name. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  now: () => number
  /** Milliseconds of a clock that is never set. */
  elapsed: () => number
  /** Rejects once the signal is aborted. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  /** Resolves after the event loop has run what was pending. */
  yieldToEventLoop: () => Promise<void>
  random: () => number
  /** Runs `task` every `ms` milliseconds. Returns a function that ends this. */
  every: (ms: number, task: () => unknown) => () => void
  /** Returns 32 hexadecimal digits. */
  randomHex: () => string
  /** From now on a signal ends the process at once. For commands that compute for long and write nothing. */
  dieOnSignal: () => void
}

/** What a command gets beside its own arguments and options. */
export interface Invocation extends Runtime {
  globals: Globals
  /** Standard error, for the log, where `--quiet` silences `stderr`. */
  errors: Output
}

/** The options that every command has. */
export interface Globals {
  /** The file that the option names, else the environment, else the default. */
  config: string
  logLevel: string
  /** Absent: readable on a terminal, else JSON. */
  logFormat?: 'json' | 'pretty'
  quiet?: boolean
}
