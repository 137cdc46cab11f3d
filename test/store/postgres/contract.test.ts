import { describe, expect, it } from 'vitest'
import { createClock } from '../../helpers/clock.ts'
import { type KeptSchema, keepSchema } from '../../helpers/kept-schema.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { openMirrorOnKept } from '../../helpers/postgres-mirror.ts'
import { describeStore } from '../contract.ts'
import { describeColumns } from '../contract-columns.ts'
import { describeRefreshes } from '../contract-refreshes.ts'
import { begin, openedStore } from '../stage.ts'

const server = await openDatabase()

let schema: KeptSchema | undefined

async function openStore() {
  schema ??= await keepSchema(server)
  await schema.empty()
  const kept = schema
  const { store, clock, rows, server: own } = await openMirrorOnKept(kept, 0, createClock())
  return openedStore({
    store,
    clock,
    other: async () => (await openMirrorOnKept(kept, 1, clock)).store,
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
