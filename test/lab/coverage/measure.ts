import { createRandom } from '../../simulation/random.ts'
import { jobAt, type Kind } from './kinds.ts'
import { createPassing, drawTies, type MovingList, type ServedPage, slice, type Ties } from './moving-list.ts'
import { type WalkResult, walkList } from './walk-list.ts'

export interface Setting {
  pages: number
  perPage: number
  /** Consecutive walks over the same list; each two are a pair. */
  walks: number
  maxPasses: number
  requestsPerMinute: number
}

export const SETTING: Setting = { pages: 4000, perPage: 25, walks: 2, maxPasses: 3, requestsPerMinute: 60 }

/** One walk of a history. */
export interface Reading {
  coverage: WalkResult['coverage']
  passes: number
  /** Requests beyond one a page, in percent of the pages. */
  extra: number
  /** Items listed from its start to its end and never seen. */
  missed: number
}

export interface History {
  readings: Reading[]
  /** Listed items that the first two walks would remove; null if not both are trusted. */
  wronglyRemoved: number | null
}

/** A list that moves, and its random numbers. */
interface Ground {
  kind: Kind
  setting: Setting
  list: MovingList
  pass: (seconds: number) => void
  ties: Ties | null
}

const IDLE_S = 900

/** Walks over one list that moves as its kind says. */
export function live(kind: Kind, seed: number, setting: Setting = SETTING): History {
  const random = createRandom(seed).next
  const count = (kind.pages ?? setting.pages) * setting.perPage
  const list: MovingList = { ids: Array.from({ length: count }, (_, id) => id), next: count, random }
  const ties = kind.ties ? drawTies(kind.ties, random, count / 2) : null
  const ground: Ground = { kind, setting, list, pass: createPassing(list, kind.streams), ties }
  const known: WalkResult[] = []
  const readings: Reading[] = []
  for (let walk = 0; walk < setting.walks; walk++) {
    const last = readings.at(-1)
    const { result, reading } = readOnce(ground, last?.coverage ?? null)
    known.push(result)
    readings.push(reading)
    if (walk < setting.walks - 1) ground.pass(IDLE_S)
  }
  return { readings, wronglyRemoved: countWrong(list, count, known) }
}

function readOnce(ground: Ground, lastCoverage: WalkResult['coverage']) {
  const { kind, list, pass } = ground
  const { perPage, maxPasses, requestsPerMinute } = ground.setting
  const pages = Math.ceil(list.ids.length / perPage)
  const first = list.next
  const done = new Set<string>()
  const gap = 60 / requestsPerMinute
  const late = kind.late ?? 0
  const result = walkList({
    perPage,
    maxPasses,
    lastCoverage,
    pageAt: (number) => serve(ground, number, late * gap),
    beforeRequest(reading) {
      pass(gap * (1 - late))
      if (kind.hasJob) jobAt(list, pages, reading, done)
    },
    interruptedAt: kind.isInterrupted ? 2 + Math.floor(list.random() * (pages - 1)) : null,
    interrupt: () => pass(3600),
  })
  const missed = list.ids.filter((id) => id < first && !result.has(id)).length
  const extra = (100 * (result.requests - pages)) / pages
  const { coverage, passes } = result
  // Without the seen items: thousands of histories would not fit into memory.
  return { result, reading: { coverage, passes, extra, missed } }
}

function serve({ list, pass, setting, ties }: Ground, number: number, lateSeconds: number): ServedPage {
  const { perPage } = setting
  const total = list.ids.length
  if (lateSeconds > 0) pass(lateSeconds)
  return { total, ids: slice(list, (number - 1) * perPage, number * perPage, ties) }
}

function countWrong(list: MovingList, count: number, known: readonly WalkResult[]): number | null {
  const [first, second] = known
  if (!first || !second || !isTrusted(first) || !isTrusted(second)) return null
  return list.ids.filter((id) => id < count && !first.has(id) && !second.has(id)).length
}

export function isTrusted({ coverage }: Pick<WalkResult, 'coverage'>): boolean {
  return coverage === 'steady' || coverage === 'repaired'
}
