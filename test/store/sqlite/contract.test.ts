import { misfitColumns } from '../../../src/store/core/status.ts'
import { runRule } from '../../../src/store/sqlite/driver.ts'
import { readFileFacts } from '../../../src/store/sqlite/read.ts'
import { openTestMirror, type Row } from '../../helpers/test-mirror.ts'
import { describeStore, type OpenedStore } from '../contract.ts'
import { describeRefreshes } from '../contract-refreshes.ts'

const idOf = (key: readonly string[], row: Row) =>
  key.length === 1 ? String(row[key[0] ?? '']) : JSON.stringify(key.map((name) => String(row[name])))

async function openStore(): Promise<OpenedStore> {
  const test = openTestMirror()
  const ofOrganization = 'WHERE _organization_id = ? ORDER BY 2, 3'
  return {
    store: test.store,
    other: async () => openTestMirror({ file: test.file, clock: test.clock }).store,
    async live({ organization, collection: { name, key } }) {
      const rows = test.rows(`SELECT * FROM ${name}_raw ${ofOrganization}`, organization.id)
      return Object.fromEntries(rows.map(({ _json: text, ...row }) => [idOf(key, row), String(text)]))
    },
    async history({ organization, collection: { name, key } }) {
      const rows = test.rows(`SELECT * FROM ${name}_history ${ofOrganization}`, organization.id)
      return rows.map(({ _reason: reason, ...row }) => [idOf(key, row), String(reason)])
    },
    runs: async () =>
      test.rows('SELECT status, rows_removed FROM sync_runs ORDER BY id') as {
        status: string
        rows_removed: number
      }[],
    columns: async () => {
      const rows = test.rows(`SELECT "column", type FROM sync_columns WHERE collection = 'orders'`)
      return Object.fromEntries(rows.map(({ column, type }) => [String(column), String(type)]))
    },
    rows: async (sql) => test.rows(sql),
    failing: async () => {
      const [row] = test.rows(
        'SELECT failing_by, failing_since, failing_code FROM sync_jobs WHERE failing_since IS NOT NULL',
      )
      return row ? (Object.values(row) as [string, string, string]) : null
    },
    status: async () => readFileFacts(test.connection, () => null, Date.now()).jobs[0],
    lastRun: async () =>
      Object.values(
        test.rows(
          'SELECT last_run_status, error_code FROM sync_status ORDER BY organization, collection',
        )[0] ?? {},
      ) as [string, string | null],
    misfits: async () => runRule(test.connection, misfitColumns()),
    advance: test.clock.advance,
  }
}

describeStore('SQLite', openStore)
describeRefreshes('SQLite', openStore)
