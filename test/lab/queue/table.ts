import type { Outcome } from './play.ts'

const CELLS = [
  'setting',
  'budgets used',
  'first list of a token',
  'longest wait',
  'took',
  'statements a list',
]

export const HEADING = `| ${CELLS.join(' | ')} |\n|${' --- |'.repeat(CELLS.length)}`

/** A line of the table, in Markdown. */
export function rowText({
  setting,
  used,
  firstWaits,
  longestWait,
  took,
  wrong,
  statements,
}: Outcome): string {
  const cells = [
    setting.name,
    `${percent(median(used))}, least ${percent(Math.min(...used))}`,
    `${seconds(median(firstWaits))}, last ${seconds(Math.max(...firstWaits))}`,
    seconds(longestWait),
    seconds(took) + (wrong === 0 ? '' : `, ${wrong} lists not read once`),
    (statements / setting.lists.length).toFixed(1),
  ]
  return `| ${cells.join(' | ')} |`
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
}
