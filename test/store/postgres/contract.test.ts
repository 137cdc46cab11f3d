import { afterAll, describe } from 'vitest'
import { newSchema, startPostgres } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import type { Row } from '../../helpers/test-mirror.ts'
import { describeStore, type OpenedStore } from '../contract.ts'
import { describeRefreshes } from '../contract-refreshes.ts'

const server = await startPostgres()
afterAll(() => server.stop())
if (server.missing !== null) console.warn(server.missing)

const idOf = (key: readonly string[], row: Row) =>
  key.length === 1 ? String(row[key[0] ?? '']) : JSON.stringify(key.map((name) => String(row[name])))

async function openStore(): Promise<OpenedStore> {
  const test = await openPostgresMirror(newSchema(server))
  const ofOrganization = 'WHERE _organization_id = $1 ORDER BY 2, 3'
  return {
    store: test.store,
    other: async () => (await openPostgresMirror(test.address, test.clock)).store,
    async live({ organization, collection: { name, key } }) {
      const rows = await test.rows(`SELECT * FROM ${name}_raw ${ofOrganization}`, organization.id)
      return Object.fromEntries(rows.map(({ _json: text, ...row }) => [idOf(key, row), String(text)]))
    },
    async history({ organization, collection: { name, key } }) {
      const rows = await test.rows(`SELECT * FROM ${name}_history ${ofOrganization}`, organization.id)
      return rows.map(({ _reason: reason, ...row }) => [idOf(key, row), String(reason)])
    },
    runs: async () =>
      (await test.rows('SELECT status, rows_removed::int FROM sync_runs ORDER BY id')) as {
        status: string
        rows_removed: number
      }[],
    advance: test.clock.advance,
  }
}

describe.skipIf(server.missing !== null)('on a real server', () => {
  describeStore('PostgreSQL', openStore)
  describeRefreshes('PostgreSQL', openStore)
})
