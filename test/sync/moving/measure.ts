import { jobAt, type Kind } from './kinds.ts'
import { createPassing, type MovingList } from './moving-list.ts'
import { createRandom } from './random.ts'
import { type WalkResult, walkList } from './walk-list.ts'

export interface Setting {
  pages: number
  perPage: number
  /** Walks one after another over the same list; a pair is two of them. */
  walks: number
  maxPasses: number
  requestsPerMinute: number
}

export const SETTING: Setting = { pages: 4000, perPage: 25, walks: 2, maxPasses: 3, requestsPerMinute: 60 }

/** One walk of a history. */
export interface Reading {
  coverage: WalkResult['coverage']
  passes: number
  /** Requests beyond the pages, in percent of them. */
  extra: number
  /** Items that were listed from its start to its end, and never seen. */
  missed: number
  asked: Record<string, number>
  end: WalkResult['end']
}

export interface History {
  readings: Reading[]
  /** Items that the first two walks, both trusted, would take for removed though they are listed. */
  wronglyRemoved: number
}

const IDLE_S = 900

/** Some walks over one list that moves as its kind says. */
export function live(kind: Kind, seed: number, setting: Setting = SETTING): History {
  const random = createRandom(seed)
  const pages = kind.pages ?? setting.pages
  const count = pages * setting.perPage
  const list: MovingList = { ids: Array.from({ length: count }, (_, id) => id), next: count, random }
  const pass = createPassing(list, kind.streams)
  const known: WalkResult[] = []
  const readings: Reading[] = []
  for (let walk = 0; walk < setting.walks; walk++) {
    const last = readings.at(-1)
    const { result, reading } = readOnce(
      kind,
      list,
      pass,
      setting,
      last !== undefined && last.coverage !== 'steady',
    )
    known.push(result)
    readings.push(reading)
    if (walk < setting.walks - 1) pass(IDLE_S)
  }
  return { readings, wronglyRemoved: countWrong(list, count, known) }
}

function readOnce(
  kind: Kind,
  list: MovingList,
  pass: (seconds: number) => void,
  { perPage, maxPasses, requestsPerMinute }: Setting,
  expectsMoves: boolean,
) {
  const pages = Math.ceil(list.ids.length / perPage)
  const first = list.next
  const done = new Set<string>()
  const result = walkList({
    perPage,
    maxPasses,
    expectsMoves,
    pageAt: (number) => ({
      ids: list.ids.slice((number - 1) * perPage, number * perPage),
      total: list.ids.length,
    }),
    beforeRequest(_request, reading) {
      pass(60 / requestsPerMinute)
      if (kind.hasJob) jobAt(list, pages, reading, done)
    },
    interruptedAt: kind.isInterrupted ? 2 + Math.floor(list.random() * (pages - 1)) : null,
    interrupt: () => pass(3600),
  })
  const missed = list.ids.filter((id) => id < first && !result.has(id)).length
  const extra = (100 * (result.requests - pages)) / pages
  const { coverage, passes, asked, end } = result
  // Without what it saw, or thousands of histories would not fit into memory.
  return { result, reading: { coverage, passes, asked, end, extra, missed } }
}

function countWrong(list: MovingList, count: number, known: readonly WalkResult[]): number {
  const [first, second] = known
  if (!first || !second || !isTrusted(first) || !isTrusted(second)) return 0
  return list.ids.filter((id) => id < count && !first.has(id) && !second.has(id)).length
}

export function isTrusted({ coverage }: Pick<WalkResult, 'coverage'>): boolean {
  return coverage === 'steady' || coverage === 'repaired'
}
