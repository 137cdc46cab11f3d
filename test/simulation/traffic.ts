import type { Reader } from './asking.ts'
import type { ListFilters, ListPage } from './list.ts'
import type { SimulatedProcess } from './process.ts'
import type { Headers } from './throttle.ts'

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
