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
  clock: ServerClock,
  beginAsking: (scope: string) => (held: string | null) => void,
): BudgetStore {`,
    `let workers = 0
export function createBudgets(
  connected: Server,
  clock: ServerClock,
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
  bug('a hold is not read before a request, only when a list begins', 1_000_001, [
    'api/token-hold.ts',
    'refresh: async () => store.refresh?.(),',
    'refresh: async () => {},',
  ]),
  bug('two workers take the same permit', 1_000_000, [
    'store/postgres/budgets.ts',
    'WHERE scope = $1 AND version = $6',
    'WHERE scope = $1 AND version >= $6',
  ]),
  bug('a walk begins and ends without a look at the epoch of its job', 1_000_032, [
    'store/postgres/walks/job.ts',
    'AND epoch = $3 FOR NO KEY UPDATE',
    'AND epoch >= $3 FOR NO KEY UPDATE',
  ]),
  bug('a transaction is repeated though its COMMIT was written', 1_000_117, [
    'store/postgres/server/server.ts',
    'if (inDoubt && (await wasCommitted(pool, inDoubt.id)))',
    'if (inDoubt && (await wasCommitted(pool, inDoubt.id)) === null)',
  ]),
  bug(
    'a worker goes by the clock of its own machine',
    1_000_008,
    [
      'cli/postgres/open.ts',
      'createServerClock(server, runtime.elapsed,',
      'createServerClock(server, runtime.now,',
    ],
    ['store/postgres/server/clock.ts', 'if (!isTrue) correct(', 'if (Number.isNaN(at)) correct('],
  ),
]
