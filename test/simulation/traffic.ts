import type { Observe, PageSource, RequestEvent } from '../../src/sync/types.ts'
import type { ListFilters, ListPage } from './list.ts'
import type { SimulatedProcess } from './process.ts'
import type { Headers } from './server.ts'

/** A request as the server's own log has it. */
export interface Request {
  /** From 1, in the order they left. */
  number: number
  process: SimulatedProcess
  sentAt: number
  token: string
  organization: string
  collection: string
  /** Organization and collection. */
  job: string
  page: number
  filters: ListFilters
  reader: Reader
}

/** What becomes of a request on the server's side, and on the way back. */
export type Outcome =
  /** A page is null where the answer is no page, or one whose body breaks off. */
  | { kind: 'answer'; status: number; headers: Headers; body: string; page: ListPage | null }
  /** The connection breaks. */
  | { kind: 'reset' }
  /** Nothing comes back, ever. */
  | { kind: 'silence' }

export function jobName(organization: string, collection: string): string {
  return `${organization} ${collection}`
}

/** What a page is asked for by. */
export type Reader = 'walk' | 'refresh'

let asking: Reader = 'walk'

/** Who asks for the page that is being sent for now. */
export function whoAsks(): Reader {
  return asking
}

/** The pages of a job as its readers ask for them: a request does not say itself whether it is a walk's. */
export function askedSource(source: PageSource): PageSource {
  return {
    ...source,
    fetchPage: (page, observe, signal, urgency) =>
      source.fetchPage(page, askedBy(urgency === undefined ? 'walk' : 'refresh', observe), signal, urgency),
  }
}

/** An observer is told of a request in the very moment in which it leaves. */
function askedBy(reader: Reader, observe: Observe<RequestEvent>): Observe<RequestEvent> {
  return (event) => {
    if (event.kind === 'request') asking = reader
    observe(event)
  }
}
