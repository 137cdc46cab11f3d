import { type Freshness, type Line, measureFreshness } from './measure.ts'

type List = Line['lists'][number]

const LIST: List = { order: 'first', removals: 'oldest', life: 'orders', rows: 100_000, arrivals: 1 }

const one = (more: Partial<List> = {}) => [{ ...LIST, ...more }]

/** 20 lists of 10 to 200,000 rows, each two thirds longer than the one before; as many new ones for their length as of the first list. */
const DIFFERENT = Array.from({ length: 20 }, (_, index) => {
  const rows = Math.round(10 * 20_000 ** (index / 19))
  return { ...LIST, rows, arrivals: rows / 100_000 }
})

export const LINES: Record<string, Line> = {
  '100,000 rows, 1 new a minute': { lists: one(), limit: 60 },
  '`fast`, 5 new': { lists: one({ life: 'fast', arrivals: 5 }), limit: 60 },
  '`slow`, 5 new': { lists: one({ life: 'slow', arrivals: 5 }), limit: 60 },
  '`apart`': { lists: one({ life: 'apart' }), limit: 60 },
  '5 % changed at once each week': { lists: one({ batch: { day: 2.3, part: 0.05 } }), limit: 60, days: 7 },
  '10,000 rows': { lists: one({ rows: 10_000 }), limit: 60 },
  '5 new': { lists: one({ arrivals: 5 }), limit: 60 },
  '20 new': { lists: one({ arrivals: 20 }), limit: 60 },
  '20 new, 300 requests a minute': { lists: one({ arrivals: 20 }), limit: 300 },
  '20 new, any of the newest 100 go': { lists: one({ arrivals: 20, removals: 'newest' }), limit: 60 },
  'a fifth of the refreshes killed': { lists: one(), limit: 60, killed: 0.2 },
  'newest last': { lists: one({ order: 'last' }), limit: 60 },
  'by update': { lists: one({ order: 'by update' }), limit: 60 },
  'in no order': { lists: one({ order: 'random' }), limit: 60 },
  '20 lists, very different': { lists: DIFFERENT, limit: 60 },
  '100 lists of 5,000 rows, 5 new together': {
    lists: Array.from({ length: 100 }, () => ({ ...LIST, rows: 5000, arrivals: 0.05 })),
    limit: 60,
  },
}

export const HEADING = [
  '| list | new rows: p95 | changed: median / p95 | wrong rows | requests a day, of refreshes | fullest hour | untrue claims |',
  '| --- | --- | --- | --- | --- | --- | --- |',
].join('\n')

/** Measures a line, and tells it in Markdown. */
export function lineText(name: string, seed: number): string {
  const line = LINES[name]
  if (!line) throw new Error(`there is no line ${name}`)
  const measured = measureFreshness(line, seed)
  const { changedAges, wrongRows, requestsPerDay, refreshesPerDay, refreshes, untrue } = measured
  const cells = [
    name,
    newAgesText(measured),
    [quantile(changedAges, 0.5), quantile(changedAges, 0.95)].map(ageText).join(' / '),
    wholeText(wrongRows),
    `${wholeText(requestsPerDay)}, ${wholeText(refreshesPerDay)}`,
    measured.fullestHour.toFixed(2),
    `${untrue} of ${wholeText(refreshes)}`,
  ]
  return `| ${cells.join(' | ')} |`
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
    .map((kind) => ageText(Math.max(...kind.map(({ newAges }) => quantile(newAges, 0.95)))))
    .join(' / ')
}

export function quantile(ages: readonly number[], part: number): number {
  return ages.toSorted((a, b) => a - b)[Math.floor(ages.length * part)] ?? 0
}

function ageText(minutes: number): string {
  if (minutes >= 120) return `${(minutes / 60).toFixed(minutes < 600 ? 1 : 0)} h`
  return `${minutes.toFixed(minutes < 10 ? 1 : 0)} min`
}

function wholeText(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
