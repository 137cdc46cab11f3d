import { type Machine, type Row, ratioOf, type Unit } from './row.ts'
import { median } from './statistics.ts'

const HEAD = ['scenario', 'measured', 'ours', 'against', 'theirs', 'ours / theirs', 'from - to', 'note']

/** Medians of each, and of the ratios of the rounds, with the least and the most of those. */
export function markdownTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const ratio = ratioOf(row)
    return [
      row.scenario,
      row.what,
      figure(median(row.ours), row.unit),
      row.against,
      figure(median(row.others), row.unit),
      digits(ratio.median),
      `${digits(ratio.least)} - ${digits(ratio.most)}`,
      row.note ?? '',
    ]
  })
  const rule = HEAD.map((_, column) => (NUMERIC.has(column) ? '---:' : '---'))
  return [HEAD, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const NUMERIC = new Set([2, 4, 5, 6])

/** On what it was measured, in one line. */
export function machineLine({ processor, cores, memoryGb, system, versions }: Machine): string {
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
  return `${processor}, ${cores} cores, ${memoryGb} GB, ${system}; ${programs.join(', ')}`
}

/** With so many digits as are worth reading. */
export function figure(value: number, unit: Unit): string {
  if (unit === 'ms') return value < 1000 ? `${digits(value)} ms` : `${digits(value / 1000)} s`
  if (unit === 'kB') return `${digits(value / 1024)} MB`
  return `${digits(value)} ${unit}`
}

/** Three digits, and all of those before the point. */
export function digits(value: number): string {
  if (value === 0) return '0'
  const before = Math.floor(Math.log10(Math.abs(value))) + 1
  return value.toFixed(Math.max(0, Math.min(4, 3 - before)))
}
