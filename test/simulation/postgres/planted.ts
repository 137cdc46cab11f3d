import { bug, type PlantedBug } from '../planted-bug.ts'

/** Mistakes of what workers on one server share, each with a seed that finds it. */
export const SERVER_BUGS: readonly PlantedBug[] = [
  bug('a page is written without a look at the epoch of its job', 1, [
    'store/postgres/walks/commit-sql.ts',
    'AND collection = :collection AND epoch = :epoch',
    'AND collection = :collection AND epoch >= :epoch',
  ]),
  bug('a job is taken whose lock another worker has', 0, [
    'store/postgres/leases.ts',
    'return row?.locked === true',
    'return row !== undefined',
  ]),
  bug('each worker has a budget of its own', 0, [
    'store/postgres/budgets.ts',
    `export function createBudgets(
  server: Server,
  now: () => number,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {`,
    `let workers = 0
export function createBudgets(
  connected: Server,
  now: () => number,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {
       const own = \` \${++workers}\`
       const server = {
         ...connected,
         rows: <T>(text: string, [scope, ...values]: readonly unknown[] = []) =>
           connected.rows<T>(text, [\`\${scope}\${own}\`, ...values]),
       }`,
  ]),
  bug('the hold of a refused token is not written', 15, [
    'store/postgres/tokens.ts',
    'await sql.rows(HOLD, [organizationIds, fingerprint, storable(reason), at])',
    'void [organizationIds, reason, at, HOLD, storable]',
  ]),
]
