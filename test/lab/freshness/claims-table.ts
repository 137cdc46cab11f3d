import type { Order } from './living-list.ts'
import type { FreshnessSetting } from './measure.ts'
import { type Claims, countClaims, SETTING } from './measure-policies.ts'
import { wholeText } from './table.ts'

/** How long a list is does not matter to its newest end, and a short one is played in less time. */
const ROWS = 10_000

const LIMITS = [60, 300]
const LIVES = ['orders', 'fast', 'slow']
const COLUMNS: readonly Pick<FreshnessSetting, 'arrivals' | 'killed' | 'removals'>[] = [
  { arrivals: 1, killed: 0, removals: 'oldest' },
  { arrivals: 5, killed: 0, removals: 'oldest' },
  { arrivals: 20, killed: 0, removals: 'oldest' },
  { arrivals: 20, killed: 0.2, removals: 'oldest' },
  { arrivals: 20, killed: 0, removals: 'newest' },
]

export const HEADING = [
  '| newest, life, requests a minute | 1 new a minute | 5 | 20 | 20, a fifth killed | 20, any of the newest 100 go |',
  '| --- | --- | --- | --- | --- | --- |',
].join('\n')

/** The lines of a table in Markdown, each as soon as it is counted. */
export function* claimLines(orders: readonly Order[], least: number): Generator<string> {
  for (const life of LIVES)
    for (const limit of LIMITS)
      for (const order of orders) {
        const list = { ...SETTING, rows: ROWS, order, life, limit }
        const cells = COLUMNS.map((column) => claimsText(countClaims({ ...list, ...column }, least)))
        yield `| ${order}, \`${life}\`, ${limit} | ${cells.join(' | ')} |`
      }
}

function claimsText({ untrue, refreshes }: Claims): string {
  return `${untrue} of ${wholeText(refreshes)}`
}
