import { bug, type PlantedBug } from '../planted-bug.ts'

/** Mistakes of what workers on one server share, each with a seed that finds it. */
export const SERVER_BUGS: readonly PlantedBug[] = [
  bug('a page is written without a look at the epoch of its job', 0, [
    'store/postgres/walks/commit-sql.ts',
    'AND collection = :collection AND epoch = :epoch',
    'AND collection = :collection AND epoch >= :epoch',
  ]),
  bug('a walk begins and ends without a look at the epoch of its job', 0, [
    'store/postgres/store.ts',
    'AND epoch = $3 FOR NO KEY UPDATE`',
    'AND epoch >= $3 FOR NO KEY UPDATE`',
  ]),
  bug('a job is taken whose lock another worker has', 0, [
    'store/postgres/leases.ts',
    'return row?.locked === true',
    'return row !== undefined',
  ]),
  bug('each worker has a budget of its own', 0, [
    'store/postgres/budgets.ts',
    'export function createBudgets(server: Server, now: () => number): BudgetStore {',
    `let workers = 0
     export function createBudgets(connected: Server, now: () => number): BudgetStore {
       const own = \` \${++workers}\`
       const server = {
         ...connected,
         rows: <T>(text: string, [scope, ...values]: readonly unknown[] = []) =>
           connected.rows<T>(text, [\`\${scope}\${own}\`, ...values]),
       }`,
  ]),
  bug('whoever comes second takes the same permit', 0, [
    'store/postgres/budgets.ts',
    'WHERE scope = $1 AND version = $6',
    'WHERE scope = $1 AND version >= $6',
  ]),
  bug('a hold is not read before a request', 0, [
    'store/postgres/tokens.ts',
    'refreshHold: (fingerprint) => readReason(fingerprint),',
    'refreshHold: async () => {},',
  ]),
  bug('the hold of a refused token is not written', 0, [
    'store/postgres/tokens.ts',
    'await sql.rows(HOLD, [organizationIds, fingerprint, storable(reason), at])',
    'void [organizationIds, reason, at, HOLD, storable]',
  ]),
  bug('a worker that is told to stop leaves the hold of a refused token unwritten', 0, [
    'store/postgres/tokens.ts',
    'await server.attempt(async (sql) => {',
    'await server.transaction(async (sql) => {',
  ]),
  bug('a transaction whose COMMIT got no answer is repeated', 0, [
    'store/postgres/server/server.ts',
    'if (inDoubt && (await wasCommitted(pool, inDoubt.id))) return inDoubt.result',
    'void [inDoubt, wasCommitted]',
  ]),
]
