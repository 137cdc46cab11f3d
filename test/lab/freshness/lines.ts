import { type Freshness, type ListSetting, measureFreshness, type TokenSetting } from './measure.ts'
import { SETTING } from './measure-policies.ts'
import { optimum } from './optimum.ts'
import { policyNamed } from './policies.ts'
import { ageText, summarize, wholeText } from './table.ts'

/** Lists of one token, refreshed with a tenth of the limit beside a walk a day. */
export interface Line {
  lists: readonly ListSetting[]
  limit: number
  killed?: number
  workers?: number
  killedSteps?: number
  days?: number
  /** Wrong rows of a reader that knows all rates, walks nothing and sends as many requests, executed; else it is calculated. */
  known?: number
}

const LIST: ListSetting = { ...SETTING, order: 'first' }

const one = (more: Partial<ListSetting> = {}) => [{ ...LIST, ...more }]
const many = (count: number, more: Partial<ListSetting>) =>
  Array.from({ length: count }, () => ({ ...LIST, ...more }))

/** 20 lists of 10 to 200,000 rows, each two thirds longer than the one before; as many new ones for their length as of the first list. */
const DIFFERENT = Array.from({ length: 20 }, (_, index) => {
  const rows = Math.round(10 * 20_000 ** (index / 19))
  return { ...LIST, rows, arrivals: rows / 100_000 }
})

export const LINES: Record<string, Line> = {
  'as above': { lists: one(), limit: 60, known: 167 },
  '`fast`, 5 new': { lists: one({ life: 'fast', arrivals: 5 }), limit: 60, known: 40 },
  '`slow`, 5 new': { lists: one({ life: 'slow', arrivals: 5 }), limit: 60, known: 2106 },
  '`apart`': { lists: one({ life: 'apart' }), limit: 60, known: 60 },
  '5 % changed at once each week': {
    lists: one({ batch: { day: 2.3, part: 0.05 } }),
    limit: 60,
    days: 7,
    known: 379,
  },
  '10,000 rows': { lists: one({ rows: 10_000 }), limit: 60, known: 72 },
  '5 new': { lists: one({ arrivals: 5 }), limit: 60, known: 2522 },
  '20 new': { lists: one({ arrivals: 20 }), limit: 60, known: 16_907 },
  '20 new, 300 requests a minute': { lists: one({ arrivals: 20 }), limit: 300, known: 3196 },
  '20 new, any of the newest 100 go': { lists: one({ arrivals: 20, removals: 'newest' }), limit: 60 },
  'a fifth of the refreshes killed': { lists: one(), limit: 60, killed: 0.2, known: 167 },
  '1,000,000 rows': { lists: one({ rows: 1_000_000 }), limit: 60 },
  'newest last': { lists: one({ order: 'last' }), limit: 60, known: 167 },
  'by update': { lists: one({ order: 'by update' }), limit: 60 },
  'in no order': { lists: one({ order: 'random' }), limit: 60 },
  '20 lists, very different': { lists: DIFFERENT, limit: 60 },
  'the same, two workers': { lists: DIFFERENT, limit: 60, workers: 2 },
  'two workers, killed at a hundredth of their steps': {
    lists: DIFFERENT,
    limit: 60,
    workers: 2,
    killedSteps: 0.01,
  },
  '100 lists of 5,000 rows, 5 new together': { lists: many(100, { rows: 5000, arrivals: 0.05 }), limit: 60 },
}

export const HEADING = [
  '| list | new rows: p95 | changed: median / p95 | wrong rows | optimum | times | requests a day, of refreshes | fullest hour | untrue claims |',
  '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
].join('\n')

/** Measures a line, and tells it in Markdown. */
export function lineText(name: string, seed: number): string {
  const line = LINES[name]
  if (!line) throw new Error(`there is no line ${name}`)
  const { lists, limit, killed = 0, workers = 1, killedSteps = 0, days = 3 } = line
  const { before } = SETTING
  const setting: TokenSetting = { lists, limit, killed, workers, killedSteps, days, before }
  const measured = measureFreshness(policyNamed('share 10 %'), setting, seed)
  const { newAge, changedAge, wrongRows, requestsPerDay, refreshes, untrue } = summarize(name, measured)
  const best = optimumOf(line, requestsPerDay)
  const cells = [
    name,
    lists.length > 1 ? newAgesText(measured) : ageText(newAge.p95),
    [changedAge.median, changedAge.p95].map(ageText).join(' / '),
    wholeText(wrongRows),
    best === null ? '-' : `${wholeText(best)}${line.known ? '' : ' ¹'}`,
    best === null ? '-' : (wrongRows / best).toFixed(2),
    `${wholeText(requestsPerDay)}, ${wholeText(measured.refreshesPerDay)}`,
    measured.fullestHour.toFixed(2),
    `${untrue} of ${wholeText(refreshes)}`,
  ]
  return `| ${cells.join(' | ')} |`
}

/** Null where depth says nothing of age, and where walks take nearly all requests. */
function optimumOf({ known, lists }: Line, requestsPerDay: number): number | null {
  if (known !== undefined) return known
  const isByAge = lists.every(
    ({ order, removals, rows }) => order === 'first' && removals === 'oldest' && rows < 1_000_000,
  )
  return isByAge ? optimum(lists, requestsPerDay) : null
}

/** Of lists that are very different: of the largest one, of the worst one with a new row an hour at least, and of all others. */
function newAgesText({ lists }: Freshness): string {
  const largest = Math.max(...lists.map(({ arrivals }) => arrivals))
  const kinds = [
    lists.filter(({ arrivals }) => arrivals === largest),
    lists.filter(({ arrivals }) => arrivals < largest && arrivals >= 1 / 60),
    lists.filter(({ arrivals }) => arrivals < 1 / 60),
  ]
  return kinds
    .filter(({ length }) => length > 0)
    .map((kind) => ageText(Math.max(...kind.map(({ newAges }) => p95(newAges)))))
    .join(' / ')
}

function p95(ages: readonly number[]): number {
  return ages.toSorted((a, b) => a - b)[Math.floor(ages.length * 0.95)] ?? 0
}
