import { type Line, measureFreshness } from './measure.ts'
import type { WorldSetting } from './world.ts'

const LIST: WorldSetting = { order: 'first', removals: 'oldest', life: 'orders', rows: 100_000, arrivals: 1 }

const one = (list: Partial<WorldSetting> = {}, line: Partial<Line> = {}): Line => ({
  lists: [{ ...LIST, ...list }],
  limit: 60,
  ...line,
})

/** 20 lists of 10 to 200,000 rows, each two thirds longer than the one before; as many new ones for their length as of the first list. */
const DIFFERENT = Array.from({ length: 20 }, (_, index) => {
  const rows = Math.round(10 * 20_000 ** (index / 19))
  return { ...LIST, rows, arrivals: rows / 100_000 }
})

export const LINES: Record<string, Line> = {
  '100,000 rows, 1 new a minute': one(),
  '`fast`, 5 new': one({ life: 'fast', arrivals: 5 }),
  '`slow`, 5 new': one({ life: 'slow', arrivals: 5 }),
  '10,000 rows': one({ rows: 10_000 }),
  '5 new': one({ arrivals: 5 }),
  '20 new': one({ arrivals: 20 }),
  '20 new, 300 requests a minute': one({ arrivals: 20 }, { limit: 300 }),
  '20 new, any of the newest 100 go': one({ arrivals: 20, removals: 'newest' }),
  'newest last': one({ order: 'last' }),
  'by update': one({ order: 'by update' }),
  'in no order': one({ order: 'random' }),
  '20 lists, very different': { lists: DIFFERENT, limit: 60 },
  '100 lists of 5,000 rows, 5 new together': {
    lists: Array.from({ length: 100 }, () => ({ ...LIST, rows: 5000, arrivals: 0.05 })),
    limit: 60,
  },
}

export const HEADING = [
  '| list | new rows: p95 | wrong rows | requests a day, of refreshes | fullest hour | untrue claims |',
  '| --- | --- | --- | --- | --- | --- |',
].join('\n')

const whole = (value: number) => Math.round(value).toLocaleString('en-US')

/** Measures a line, and tells it in Markdown. */
export function lineText(name: string, seed: number): string {
  const line = LINES[name]
  if (!line) throw new Error(`there is no line ${name}`)
  const measured = measureFreshness(line, seed)
  const { newAges, wrongRows, requestsPerDay, refreshesPerDay, fullestHour, refreshes, untrue } = measured
  const cells = [
    name,
    `${quantile(newAges.flat(), 0.95).toFixed(1)} min`,
    whole(wrongRows),
    `${whole(requestsPerDay)}, ${whole(refreshesPerDay)}`,
    fullestHour.toFixed(2),
    `${untrue} of ${whole(refreshes)}`,
  ]
  return `| ${cells.join(' | ')} |`
}

export function quantile(ages: readonly number[], part: number): number {
  return ages.toSorted((a, b) => a - b)[Math.floor(ages.length * part)] ?? 0
}
