export type Unit = 'ms' | 'kB' | 'pages/s' | 'transactions'

/** One comparison: the figures of both sides, by round. */
export interface Row {
  scenario: string
  what: string
  unit: Unit
  ours: readonly number[]
  against: string
  theirs: readonly number[]
}

export interface Spread {
  median: number
  least: number
  most: number
}

/** Of the ratios of each round: what slowed the machine down for a while slowed both sides of it. */
export function ratioOf({ ours, theirs }: Row): Spread {
  if (ours.length !== theirs.length) throw new RangeError('both sides need the same number of rounds')
  const ratios = ours.map((value, round) => value / (theirs[round] ?? Number.NaN))
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) }
}

/** The middle value, or the mean of the middle two. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.floor((sorted.length - 1) / 2)]
  if (upper === undefined || lower === undefined) throw new RangeError('nothing has no median')
  return (lower + upper) / 2
}

const HEAD = ['scenario', 'measured', 'ours', 'against', 'theirs', 'ours / theirs', 'least - most']
const RULE = ['---', '---', '---:', '---', '---:', '---:', '---:']

/** The medians of both sides and of their ratios, with the least and the most ratio. */
export function markdownTable(rows: readonly Row[]): string {
  return [HEAD, RULE, ...rows.map(cellsOf)].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function cellsOf(row: Row): string[] {
  const ratio = ratioOf(row)
  return [
    row.scenario,
    row.what,
    figure(median(row.ours), row.unit),
    row.against,
    figure(median(row.theirs), row.unit),
    digits(ratio.median),
    `${digits(ratio.least)} - ${digits(ratio.most)}`,
  ]
}

function figure(value: number, unit: Unit): string {
  if (unit === 'ms') return value < 1000 ? `${digits(value)} ms` : `${digits(value / 1000)} s`
  if (unit === 'kB') return `${digits(value / 1024)} MB`
  return `${digits(value)} ${unit}`
}

/** Three digits, and all before the point. */
export function digits(value: number): string {
  if (value === 0) return '0'
  const before = Math.floor(Math.log10(Math.abs(value))) + 1
  return value.toFixed(Math.max(0, Math.min(4, 3 - before)))
}
