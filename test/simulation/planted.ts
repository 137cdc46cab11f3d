import type { HttpGet } from '../../src/api/http.ts'
import type { Store } from '../../src/sync/store.ts'
import type { SimulatedProcess } from './process.ts'

/** A statement on its way to the driver. Of SQLite only the values can be others. */
export interface SqlStatement {
  readonly sql: string
  readonly values: readonly unknown[]
}

/** Parts that the program is put together of, in the place of those that it has: what is wrong with them is the mistake. */
export interface Mistake {
  /** What the program keeps rows in. `now`: the mirror's clock. */
  store?: (store: Store, now: () => number) => Store
  /** What the program sends requests with. */
  exchange?: (exchange: HttpGet) => HttpGet
  /** What the database gets of a statement that a process runs; null: nothing, and the process is told that no row was met. */
  statement?: (statement: SqlStatement, process: SimulatedProcess) => SqlStatement | null
}

/** A mistake that the simulation must find. */
export interface PlantedBug extends Mistake {
  name: string
  /** Of a history that shows it, in a file or on a server. */
  seed: number
  isOnServer?: true
  /** What the oracle says about it: the promise that is broken, and no other one. */
  complaint: RegExp
}

/** A mistake for each promise of the README, in their order, and of what workers on one server share; each with a seed that finds it. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'the last row of a page is not written',
    seed: 0,
    complaint: /was read and is not in the mirror$/,
    store: (store) => ({
      ...store,
      commit: (lease, { changes, ...page }) =>
        store.commit(lease, {
          ...page,
          changes: page.answer ? { ...changes, upserts: changes.upserts.slice(0, -1) } : changes,
        }),
    }),
  },
  {
    name: 'what the brake holds back is removed',
    seed: 16,
    complaint: /for all the brake$/,
    store: (store) => ({
      ...store,
      closeWalk: (lease, end) =>
        store.closeWalk(lease, { ...end, removals: end.removals === 'none' ? 'none' : 'remove' }),
    }),
  },
  {
    name: 'the hold of a refused token is not kept',
    seed: 7,
    complaint: / held$/,
    statement: (statement) =>
      /\bSET held_since = [?$:]|\bINTO sync_refused_tokens\b/.test(statement.sql) ? null : statement,
  },
  {
    name: 'a pause that the server asks for is not heard',
    seed: 0,
    complaint: /leaves (?:sooner than|while) the server/,
    exchange: (exchange) => async (url, headers, signal) => {
      const { headers: told, ...answer } = await exchange(url, headers, signal)
      const { 'retry-after': _seconds, 'x-ratelimit-reset': _end, ...rest } = told
      return { ...answer, headers: rest }
    },
  },
  {
    name: 'a page is in the ledger before its rows are written',
    seed: 0,
    complaint: /^item \d+ was read and is not in the mirror$/,
    store: (store) => ({
      ...store,
      async commit(lease, page) {
        if (!page.answer) return store.commit(lease, page)
        await store.commit(lease, { ...page, changes: { ...page.changes, upserts: [] } })
        return store.commit(lease, { ...page, answer: null })
      },
    }),
  },
  { name: 'a superseded version is not kept', seed: 0, complaint: /^the history is /, store: withoutHistory },
  {
    name: 'a refresh claims what came while it read',
    seed: 9,
    complaint: /^fresh_as_of is .*, but the refresh began at /,
    store: (store, now) => ({
      ...store,
      saveRefresh: (lease, saved) => store.saveRefresh(lease, { ...saved, freshAsOf: now() }),
    }),
  },
  {
    name: 'each worker has a budget of its own',
    seed: 1_000_000,
    isOnServer: true,
    complaint: /is one of more than \d+ in 60 seconds$/,
    statement({ sql, values }, { name }) {
      const [, scope = 0] = /\bsync_gates\b[\s\S]*(?:\bscope = |VALUES \()\$(\d+)::text/.exec(sql) ?? []
      return {
        sql,
        values: values.map((value, at) => (at + 1 === Number(scope) ? `${String(value)} of ${name}` : value)),
      }
    },
  },
  {
    name: 'an owner that was overtaken still writes',
    seed: 1_000_022,
    isOnServer: true,
    // Or the database has refused what two owners wrote.
    complaint: /of a job that it has lost$|ends with INTERNAL$/,
    statement: ({ sql, values }) => ({
      sql: sql.replace(/\bepoch = (?=\$\d+ FOR NO KEY UPDATE)/, 'epoch >= '),
      values,
    }),
  },
  {
    name: 'a transaction is repeated though its COMMIT was written',
    seed: 1_000_044,
    isOnServer: true,
    complaint: /^two walks of sync are open|finds a job busy that nobody living has$/,
    statement: ({ sql, values }) => ({
      sql: sql.replace('pg_xact_status($1::text::xid8)', "substr('aborted', 1, 7 + 0 * length($1::text))"),
      values,
    }),
  },
]

function withoutHistory(store: Store): Store {
  return {
    ...store,
    commit(lease, page) {
      const { job } = lease
      const forgetful = { ...job, collection: { ...job.collection, history: false as const } }
      return store.commit({ ...lease, job: forgetful }, page)
    },
  }
}
