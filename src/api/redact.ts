import { JobError, KnownError, RetryableError } from '../errors.ts'
import type { Job } from '../sync/types.ts'
import { jobName, printable } from '../text.ts'

// How errors leave this room: with their page, and without the token.

/** So many consecutive characters of a token, from anywhere in it, are no coincidence, and tell it. */
const TELLING = 12

/** The error with the page in front of its message, and without a token that the server may have echoed. */
export function withPageContext(error: unknown, job: Job, page: number, token: string): unknown {
  const message = (text: string) => `${jobName(job)} page ${page}: ${redact(text, token)}`
  if (error instanceof RetryableError) return new RetryableError(error.code, message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message), error.shared)
  if (!(error instanceof Error) || error instanceof KnownError || error.name === 'AbortError') return error
  // An unexpected error may hold anything, such as the request's headers.
  const known = new JobError('INTERNAL', message(`unexpected: ${printable(error.message, 500)}`))
  known.stack = redact(error.stack ?? '', token)
  return known
}

/**
 * The text without each word that holds the token or a piece of it, as it is, percent-encoded, in base64, in other case or with
 * backslashes: a server may echo the request's headers.
 */
export function redact(text: string, token: string): string {
  if (token === '') return text
  const pieces = [token, encodeURIComponent(token)].flatMap((one) => piecesOf(folded(one)))
  return text.replace(/\S+/g, (word) => {
    // Four letters are three bytes, from wherever it begins.
    const parts = word.split(/[^\w+/-]+/).flatMap((part) => [0, 1, 2, 3].map((begin) => part.slice(begin)))
    const decoded = parts.map((part) => Buffer.from(part, 'base64').toString('latin1'))
    const read = folded([word, ...decoded].join(' '))
    if (!pieces.some((piece) => read.includes(piece))) return word
    // What ends the sentence stays.
    return word.replace(/^.*?([;,.:)\]]{0,3})$/, '[token]$1')
  })
}

/** The number of backslashes only says how often a text was quoted. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll('\\', '')
}

function piecesOf(token: string): string[] {
  const length = Math.min(token.length, TELLING)
  return Array.from({ length: token.length - length + 1 }, (_, at) => token.slice(at, at + length))
}
