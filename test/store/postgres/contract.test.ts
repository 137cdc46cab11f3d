import { describe, expect, it } from 'vitest'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { emptySchema, openDatabase } from '../../helpers/postgres.ts'
import { describeColumns } from '../contract-columns.ts'
import { describeRefreshes } from '../contract-refreshes.ts'
import { describeStore } from '../contract.ts'
import { begin, openedStore } from '../stage.ts'

const server = await openDatabase()

async function openStore() {
  const address = await emptySchema(server)
  const { store, clock, rows, server: own } = await openPostgresMirror(address)
  return openedStore({
    store,
    clock,
    other: async () => (await openPostgresMirror(address, clock)).store,
    rows,
    read: own.read,
  })
}

describe.skipIf(server.missing !== null)('on a real server', () => {
  describeStore('PostgreSQL', openStore)
  describeColumns('PostgreSQL', openStore)
  describeRefreshes('PostgreSQL', openStore)

  it("keeps a user's index when its column changes its type", async () => {
    const opened = await openStore()
    const { rows } = opened
    const open = await begin(opened)
    await open.page('{"id":1,"total":1,"state":"paid"}')
    await rows("CREATE INDEX mine ON orders (id, (total * 2)) WHERE state = 'paid'")

    await open.page('{"id":"x","total":0.5,"state":"paid"}')

    expect(await rows("SELECT 1 AS is_there FROM pg_indexes WHERE indexname = 'mine'")).toEqual([
      { is_there: 1 },
    ])
  })
})
