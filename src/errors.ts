/** Why a run or a command failed: the values of `sync_runs.error_code`, and `BUSY` in a command's output. */
export type ErrorCode =
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'ORGANIZATION_NOT_FOUND'
  | 'BAD_REQUEST'
  | 'RATE_LIMITED'
  | 'SERVER_ERROR'
  | 'NETWORK'
  | 'TIMEOUT'
  | 'BAD_RESPONSE'
  | 'LINK_REFUSED'
  | 'INCOMPLETE'
  | 'CONFIGURATION'
  | 'REMOVALS_HELD'
  | 'UNEXPECTED_STATUS'
  | 'DATABASE'
  | 'INTERRUPTED'
  | 'INTERNAL'
  | 'BUSY'

/** The API refuses the request itself: somebody has to act. */
export const REFUSALS: readonly ErrorCode[] = [
  'BAD_REQUEST',
  'UNAUTHORIZED',
  'FORBIDDEN',
  'ORGANIZATION_NOT_FOUND',
]

/** An expected error. The message says what happened, where, and what to do next; it never holds a token. */
export abstract class KnownError extends Error {
  abstract readonly code: ErrorCode
}

/** The same request may succeed later, so it is retried. */
export class RetryableError extends KnownError {
  override readonly name = 'RetryableError'
  readonly code: ErrorCode
  /** The pause that the server asked for; null if it named none. */
  readonly retryAfterMs: number | null

  constructor(code: ErrorCode, message: string, retryAfterMs: number | null = null) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** The server asked for fewer requests (429). The rate limiter knows: retry through it, without counting the attempt. */
export class RateLimitedError extends KnownError {
  override readonly name = 'RateLimitedError'
  readonly code = 'RATE_LIMITED'
}

/** This job fails; the others continue. */
export class JobError extends KnownError {
  override readonly name = 'JobError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string) {
    super(message)
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

/** What the system calls an error of a file or a connection (`EACCES`); null for any other error. */
export function systemCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error ? String(error.code) : null
}
