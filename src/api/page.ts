import { JobError } from '../errors.ts'
import type { Page } from '../sync/types.ts'
import { splitBody } from './body.ts'
import { type Envelope, readEnvelope } from './envelope.ts'
import type { Response } from './http.ts'
import type { LinkReader } from './links.ts'
import type { RateHeaders } from './rate/headers.ts'
import { EnvelopeError } from './response-errors.ts'

/** What a page is checked against: its size, and where links may lead. */
export interface PageRules {
  maxResponseBytes: number
  readLink: LinkReader
}

/** Returns the page of a 2xx response. Throws EnvelopeError or JobError that does not name the page. */
export function readPage(response: Response, announced: RateHeaders, page: number, rules: PageRules): Page {
  const envelope = readEnvelope(splitBody(response.body, rules.maxResponseBytes))
  const paging = envelope.paging
  if (paging && paging.currentPage !== null && paging.currentPage !== page) {
    throw new EnvelopeError(`asked for page ${page}, and page ${paging.currentPage} was answered`)
  }
  if (!paging && page > 1) {
    throw new EnvelopeError(
      `asked for page ${page}, and a list without pages was answered: the API no longer pages this list; ` +
        'run backfill --restart or wait for resumeWithin',
    )
  }
  const next = nextPage(envelope, page, rules.readLink)
  if (next !== null && paging?.lastPage != null && page > paging.lastPage && envelope.items.length === 0) {
    throw new EnvelopeError(
      `the answer has no items, names page ${next} as the next one, and says that the last page is ${paging.lastPage}: ` +
        'the list does not end',
    )
  }
  return {
    number: page,
    items: envelope.items,
    next,
    total: paging?.total ?? null,
    lastPage: paging?.lastPage ?? null,
    paginated: paging !== null,
    announcedLimit: announced.limit || null,
  }
}

function nextPage({ paging }: Envelope, currentPage: number, readLink: LinkReader): number | null {
  const next = paging ? paging.next : null
  if (next === null) return null
  if (next === undefined)
    throw new JobError('LINK_REFUSED', 'links.next is missing, so the end of the list is unknown')
  const verdict = readLink(next, currentPage)
  if ('refused' in verdict) throw new JobError('LINK_REFUSED', verdict.refused)
  return verdict.page
}
