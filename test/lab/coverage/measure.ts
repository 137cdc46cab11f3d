import { WalkReading } from '../../../src/sync/coverage/read-list.ts'
import type { Coverage } from '../../../src/sync/types.ts'
import { createRandom } from '../../simulation/random.ts'
import { type Kind, runJob } from './kinds.ts'
import { createPassing, drawTies, type MovingList, slice } from './moving-list.ts'

/** One walk of a history. */
export interface Reading {
  coverage: Coverage | null
  passes: number
  /** Requests beyond one a page, in percent of the pages. */
  extra: number
  /** Items listed from its start to its end and never seen. */
  missed: number
}

export interface History {
  /** Of two walks in a row. */
  readings: [Reading, Reading]
  /** Listed items that they would remove; null if not both are trusted. */
  wronglyRemoved: number | null
}

const PER_PAGE = 25
const REQUEST_S = 1
const IDLE_S = 900
const PAUSE_S = 3600

/** Walks twice over one list that moves as its kind says. */
export function live(kind: Kind, seed: number, pages = 4000): History {
  const random = createRandom(seed).next
  const count = (kind.pages ?? pages) * PER_PAGE
  const list: MovingList = { ids: Array.from({ length: count }, (_, id) => id), next: count, random }
  const ties = kind.ties ? drawTies(kind.ties, random, count / 2) : null
  const pass = createPassing(list, kind.streams)
  const pageAt = (page: number) => slice(list, (page - 1) * PER_PAGE, page * PER_PAGE, ties)
  const first = walk(kind, list, pass, pageAt, null)
  pass(IDLE_S)
  const second = walk(kind, list, pass, pageAt, first.reading.coverage)
  const isPair = isTrusted(first.reading) && isTrusted(second.reading)
  const gone = list.ids.filter((id) => id < count && !first.has(id) && !second.has(id))
  return { readings: [first.reading, second.reading], wronglyRemoved: isPair ? gone.length : null }
}

/** Walks the list to its end: without the page loop, its decisions alone. */
function walk(
  kind: Kind,
  list: MovingList,
  pass: (seconds: number) => void,
  pageAt: (page: number) => readonly number[],
  lastCoverage: Coverage | null,
) {
  const pages = Math.ceil(list.ids.length / PER_PAGE)
  const listed = list.next
  const late = REQUEST_S * (kind.late ?? 0)
  const interruptedAt = kind.isInterrupted ? 2 + Math.floor(list.random() * (pages - 1)) : null
  const jobsDone = new Set<string>()
  const rules = { kind: 'full', firstPage: 1, total: 'check', maxPasses: 3, lastCoverage } as const
  const reading = new WalkReading(rules, 'a list')
  while (reading.question) {
    if (reading.answers + 1 === interruptedAt) {
      pass(PAUSE_S)
      reading.resume()
    }
    pass(REQUEST_S - late)
    if (kind.hasJob) runJob(list, pages, reading.next, jobsDone)
    const { page } = reading.question
    const total = list.ids.length
    pass(late)
    const ids = pageAt(page).map(String)
    const lastPage = Math.max(Math.ceil(total / PER_PAGE), 1)
    const next = page < lastPage ? page + 1 : null
    reading.take({ page, ids, items: ids.length, total, next, lastPage }, 0)
  }
  const has = (id: number) => reading.has(String(id))
  const missed = list.ids.filter((id) => id < listed && !has(id)).length
  const extra = (100 * (reading.answers - pages)) / pages
  const coverage = reading.result?.coverage ?? null
  return { has, reading: { coverage, passes: reading.pass, extra, missed } }
}

export function isTrusted({ coverage }: Pick<Reading, 'coverage'>): boolean {
  return coverage === 'steady' || coverage === 'repaired'
}
