import { describe, expect, it } from 'vitest'
import { misfitColumns, storedFacts } from '../../../src/store/core/status.ts'
import { createClock } from '../../helpers/clock.ts'
import { type KeptSchema, keepSchema } from '../../helpers/kept-schema.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openMirrorOnKept } from '../../helpers/postgres-mirror.ts'
import type { Row } from '../../helpers/test-mirror.ts'
import { begin, describeStore, type OpenedStore } from '../contract.ts'
import { describeRefreshes } from '../contract-refreshes.ts'

const server = await openDatabase()

const idOf = (key: readonly string[], row: Row) =>
  key.length === 1 ? String(row[key[0] ?? '']) : JSON.stringify(key.map((name) => String(row[name])))

const timeOf = (value: unknown) => (value === null ? null : new Date(Number(value)).toISOString())

let schema: KeptSchema | undefined

async function openStore(): Promise<OpenedStore> {
  schema ??= await keepSchema(server)
  await schema.empty()
  const kept = schema
  const test = await openMirrorOnKept(kept, 0, createClock())
  const ofOrganization = 'WHERE _organization_id = $1 ORDER BY 2, 3'
  return {
    store: test.store,
    other: async () => (await openMirrorOnKept(kept, 1, test.clock)).store,
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
    columns: async () => {
      const rows = await test.rows(`SELECT "column", type FROM sync_columns WHERE collection = 'orders'`)
      return Object.fromEntries(rows.map(({ column, type }) => [String(column), String(type)]))
    },
    rows: test.rows,
    failing: async () => {
      const [row] = await test.rows(
        'SELECT *, floor(extract(epoch FROM failing_since) * 1000)::text AS at FROM sync_jobs WHERE failing_since IS NOT NULL',
      )
      return row ? [String(row.failing_by), timeOf(row.at) ?? '', String(row.failing_code)] : null
    },
    status: async () => {
      const facts = await test.server.read(storedFacts(() => null, Date.now()))
      return facts.jobs[0]
    },
    lastRun: async () =>
      Object.values(
        (
          await test.rows(
            'SELECT last_run_status, error_code FROM sync_status ORDER BY organization, collection',
          )
        )[0] ?? {},
      ) as [string, string | null],
    misfits: () => test.server.read(misfitColumns()),
    advance: test.clock.advance,
  }
}

describe.skipIf(server.missing !== null)('on a real server', () => {
  describeStore('PostgreSQL', openStore)
  describeRefreshes('PostgreSQL', openStore)

  it("keeps a user's index when its column changes its type", async () => {
    const { store, rows } = await openStore()
    const open = await begin(store)
    await open.page('{"id":1,"total":1,"state":"paid"}')
    await rows("CREATE INDEX mine ON orders (id, (total * 2)) WHERE state = 'paid'")

    await open.page('{"id":"x","total":0.5,"state":"paid"}')

    expect(await rows("SELECT 1 AS is_there FROM pg_indexes WHERE indexname = 'mine'")).toEqual([
      { is_there: 1 },
    ])
  })
})
