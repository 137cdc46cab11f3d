import { ERRORS, InterruptedError, type KnownError } from '../errors.ts'
import type { Job, Observe, Page, PageSource, RequestEvent } from '../sync/types.ts'
import { counted, grouped, inWords, jobName } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** A list, and its first page or why there is none. */
export interface Asked {
  job: Job
  page: Page | null
  finding: Finding
}

/**
 * Asks for the first page of a list, once, through the rate limiter and the hold of its token. Writes no rows.
 * @param limit Aborted when the time of the whole check is up.
 */
export async function askList(
  job: Job,
  openSource: () => Promise<PageSource>,
  limit: AbortSignal,
): Promise<Asked> {
  const name = jobName(job)
  let reason = 'it waited for its turn'
  const observe: Observe<RequestEvent> = (event) => {
    if (event.kind === 'request') reason = 'it waited for an answer'
    if (event.kind === 'wait') reason = event.reason
  }
  const source = await openSource()
  try {
    const refusal = await source.refusal()
    if (refusal) return { job, page: null, finding: refusedFinding(name, refusal, 'not asked: ') }
    const page = await source.fetchPage(1, observe, limit)
    return { job, page, finding: ok(name, sizeText(page)) }
  } catch (error) {
    if (limit.aborted)
      return {
        job,
        page: null,
        finding: warn(name, `not finished in time: ${reason}`),
      }
    return { job, page: null, finding: refusedFinding(name, error, '') }
  } finally {
    await source.close()
  }
}

function sizeText({ total, lastPage, items }: Page): string {
  const all = total === null ? `${counted(items.length, 'item')} on the first page` : counted(total, 'item')
  return `${all}${lastPage === null ? '' : ` on ${counted(lastPage, 'page')}`}`
}

function refusedFinding(name: string, error: unknown, before: string): Finding {
  const { code, message } = error as KnownError
  if (error instanceof InterruptedError) return warn(name, 'stopped')
  const { exitCode, cure = null } = ERRORS[code]
  // One page cannot show that the mirror and the API differ.
  const exits = code === 'CONFIGURATION' ? 2 : exitCode === 5 ? 1 : exitCode
  return fail(name, exits, before + message.replace(`${name} page 1: `, ''), cure)
}

/** A larger difference is not due to the time that the answer took. */
const SKEW_MS = 60_000

/** The clock of this machine against the server's `Date`. */
export function checkClock(date: string | undefined, now: number): Finding | null {
  const theirs = Date.parse(date ?? '')
  if (Number.isNaN(theirs)) return null
  const skew = now - theirs
  if (Math.abs(skew) <= SKEW_MS) return ok('clock', "agrees with the server's")
  return warn(
    'clock',
    `is ${inWords(Math.abs(skew))} ${skew > 0 ? 'ahead of' : 'behind'} the server's`,
    "set this machine's clock (NTP): schedules and as_of go by it",
  )
}

/** The rate limit that the answers announced, and ours. */
export function rateText(announced: number | null, ours: number | null): string {
  const theirs =
    announced === null
      ? 'the server announces none'
      : `the server announces ${grouped(announced)} requests a minute`
  return `${theirs}; ours are ${ours === null ? 'not limited' : `${grouped(ours)} a minute`}`
}
