interface ErrorFacts {
  /** The exit code of a command that meets only this error. */
  exitCode: 1 | 3 | 4 | 5
  /** For readers who see the code without its message, which may hold an item's data. */
  meaning: string
  /** It passes by itself: whoever reads by a schedule tries again. */
  passes?: true
  /** All lists have it at once, so it is told of one of them. */
  ofAll?: true
  /** An API may say so of a page past the end of a list. */
  pastTheEnd?: true
}

const FACTS = {
  BAD_REQUEST: {
    exitCode: 3,
    meaning: 'the API rejected the request as invalid, usually because of a filter',
    pastTheEnd: true,
  },
  UNAUTHORIZED: { exitCode: 3, meaning: 'its token was refused', ofAll: true },
  FORBIDDEN: { exitCode: 3, meaning: 'the token has no access to this organization' },
  ORGANIZATION_NOT_FOUND: {
    exitCode: 3,
    meaning: 'the API does not know the organization, or the address',
    pastTheEnd: true,
  },
  RATE_LIMITED: {
    exitCode: 1,
    meaning: 'the server takes no requests for longer than rateLimit.maxWait',
    passes: true,
    ofAll: true,
  },
  SERVER_ERROR: { exitCode: 1, meaning: 'the server failed', passes: true, ofAll: true },
  NETWORK: { exitCode: 1, meaning: 'the server could not be reached', passes: true, ofAll: true },
  TIMEOUT: { exitCode: 1, meaning: 'no whole answer came within api.timeout', passes: true, ofAll: true },
  BAD_RESPONSE: { exitCode: 1, meaning: 'an answer was not the list' },
  LINK_REFUSED: { exitCode: 1, meaning: 'links.next is not the next page, or is missing' },
  INCOMPLETE: { exitCode: 5, meaning: 'the list ended before its own total' },
  CONFIGURATION: {
    exitCode: 1,
    meaning: "the organization's token file or the collection's key cannot be used",
  },
  REMOVALS_HELD: { exitCode: 5, meaning: 'removals are held back: somebody has to decide' },
  UNEXPECTED_STATUS: {
    exitCode: 1,
    meaning: 'the server answered with an unexpected status',
    pastTheEnd: true,
  },
  DATABASE: { exitCode: 4, meaning: 'the mirror cannot be used', ofAll: true },
  INTERRUPTED: { exitCode: 1, meaning: 'stopped' },
  INTERNAL: { exitCode: 1, meaning: 'a defect of this program' },
  BUSY: { exitCode: 1, meaning: 'another process works on it' },
} satisfies Record<string, ErrorFacts>

/** Why a run or a command failed: the values of `sync_runs.error_code`, and `BUSY` in a command's output. */
export type ErrorCode = keyof typeof FACTS

export const ERRORS: Readonly<Record<ErrorCode, ErrorFacts>> = FACTS

/** The exit code of a command whose parts (lists, checks) ended with these exit codes: the first of 4, 2, 3, 5, 1 that is among them. */
export function worstExitCode(exitCodes: readonly number[]): number {
  return [4, 2, 3, 5, 1].find((code) => exitCodes.includes(code)) ?? 0
}

/** An expected error. The message says what happened, where, and what to do next; it never holds a token. */
export abstract class KnownError extends Error {
  abstract readonly code: ErrorCode
  /** Tells a fault that several lists have from another of its code: what lifts the hold of a token, when a budget opens again. */
  readonly shared: string

  constructor(message: string, shared = '') {
    super(message)
    this.shared = shared
  }
}

/** The same request may succeed later, so it is retried. */
export class RetryableError extends KnownError {
  override readonly name = 'RetryableError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** This job fails; the others continue. */
export class JobError extends KnownError {
  override readonly name = 'JobError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, shared?: string) {
    super(message, shared)
    this.code = code
  }
}

/** The token was refused (401): it is held until a user acts. */
export class TokenRefusedError extends KnownError {
  override readonly name = 'TokenRefusedError'
  readonly code = 'UNAUTHORIZED'
}

/** The mirror cannot be used now: every job stops. Later it may be: the lock is released, the disk has room. */
export class MirrorError extends KnownError {
  override readonly name: string = 'MirrorError'
  readonly code = 'DATABASE'
}

/** The mirror is locked by another process, or its disk is full: whoever waits can use it later. */
export class MirrorUnavailableError extends MirrorError {
  override readonly name = 'MirrorUnavailableError'
}

/** This process can never use the mirror again; a new process may. */
export class MirrorLostError extends MirrorError {
  override readonly name = 'MirrorLostError'
}

/** The process was asked to stop: what is written stays, and the next run resumes there. */
export class InterruptedError extends KnownError {
  override readonly name = 'InterruptedError'
  readonly code = 'INTERRUPTED'
}

/** The command was typed or configured wrongly; nothing was sent or written. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Returns anything thrown as a KnownError; an unexpected one becomes `INTERNAL`, with its stack for the log. */
export function toKnownError(error: unknown): KnownError {
  if (error instanceof KnownError) return error
  const unexpected = new JobError(
    'INTERNAL',
    `unexpected: ${error instanceof Error ? error.message : String(error)}`,
  )
  if (error instanceof Error && error.stack) unexpected.stack = error.stack
  return unexpected
}

/** What the system calls an error of a file or a connection (`EACCES`), or SQLite one of its own; null for any other error. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error ? String(error.code) : null
}
