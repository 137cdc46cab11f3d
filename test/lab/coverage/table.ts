import { type History, isTrusted, type Reading } from './measure.ts'

/** The results of many histories of a kind. Shares in percent. */
export interface CoverageRow {
  kind: string
  walks: number
  /** Requests beyond one a page, in percent of the pages. */
  extra: { mean: number; p99: number; max: number }
  onePass: number
  steady: number
  repaired: number
  drifted: number
  /** The share of trusted walks that missed items, and the mean number of items missed. */
  missing: number
  missed: number
  /** Pairs of trusted walks; `wrongPairs`: those that would remove a listed item. */
  pairs: number
  wrongPairs: number
}

export function summarize(kind: string, histories: readonly History[]): CoverageRow {
  const all = histories.flatMap(({ readings }) => readings)
  const trusted = all.filter(isTrusted)
  const extras = all.map(({ extra }) => extra).toSorted((a, b) => a - b)
  const pairs = histories.flatMap(({ wronglyRemoved }) => (wronglyRemoved === null ? [] : [wronglyRemoved]))
  return {
    kind,
    walks: all.length,
    extra: {
      mean: mean(extras),
      p99: extras[Math.floor(extras.length * 0.99)] ?? 0,
      max: extras.at(-1) ?? 0,
    },
    onePass: share(all, ({ passes }) => passes === 1),
    steady: share(all, ({ coverage }) => coverage === 'steady'),
    repaired: share(all, ({ coverage }) => coverage === 'repaired'),
    drifted: share(all, ({ coverage }) => coverage === 'drifted'),
    missing: share(trusted, ({ missed }) => missed > 0),
    missed: mean(trusted.map(({ missed }) => missed)),
    pairs: pairs.length,
    wrongPairs: pairs.filter((wrong) => wrong > 0).length,
  }
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

function share(readings: readonly Reading[], is: (reading: Reading) => boolean): number {
  return readings.length === 0 ? 0 : (100 * readings.filter(is).length) / readings.length
}

export const HEADING = [
  '| how the list moves | extra requests: mean / 99 of 100 / most | verdicts | trusted walks that missed something | items missed in each | wrong pairs |',
  '| --- | --- | --- | --- | --- | --- |',
].join('\n')

/** One line of a table in Markdown. */
export function rowText(row: CoverageRow): string {
  const { kind, extra, missing, missed, pairs, wrongPairs } = row
  const trusted = row.steady + row.repaired
  const cells = [
    kind,
    [extra.mean, extra.p99, extra.max].map((value) => `${short(value)} %`).join(' / '),
    verdicts(row),
    trusted === 0 ? '-' : `${short(missing)} %`,
    trusted === 0 ? '-' : short(missed, 4),
    `${wrongPairs} of ${pairs}`,
  ]
  return `| ${cells.join(' | ')} |`
}

function verdicts(row: CoverageRow): string {
  const told = (['steady', 'repaired', 'drifted'] as const).flatMap((name) => {
    if (row[name] === 0) return []
    return row[name] === 100 ? [name] : [`${name} ${short(row[name])} %`]
  })
  return told.join(', ')
}

function short(value: number, digits = 2): string {
  return String(Number(value.toFixed(digits)))
}
