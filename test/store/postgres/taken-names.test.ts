import { describe, expect, it } from 'vitest'
import { rebuildCollection } from '../../../src/store/postgres/tables/collection.ts'
import { newSchema, openDatabase } from '../../helpers/postgres.ts'
import { openPostgresMirror } from '../../helpers/postgres-mirror.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { scriptedList } from '../../helpers/scripted-list.ts'

const server = await openDatabase()

const OWN = {
  view: 'CREATE VIEW orders__lines AS SELECT 7 AS mine',
  table: 'CREATE TABLE orders__lines AS SELECT 7 AS mine',
}

describe.skipIf(server.missing !== null)('the name of a view', () => {
  it.each(Object.entries(OWN))(
    'stays with a %s of a user that stands in the place of ours',
    async (_kind, sql) => {
      const mirror = await openPostgresMirror(newSchema(server))
      const { rows } = mirror
      const sync = (item: (id: number) => string) => runOnce(mirror, scriptedList({ ids: [1, 2], item }))
      await sync((id) => `{"id":${id},"lines":[{"sku":"a"}]}`)
      expect(await rows('SELECT sku FROM orders__lines')).toHaveLength(2)
      await rows('DROP VIEW orders__lines')
      await rows(sql)

      const { error } = await sync((id) => `{"id":${id},"lines":[{"sku":"b","price":1}]}`)
      const { signal } = new AbortController()
      const rebuilt = await rebuildCollection(mirror.server, 'orders', { now: mirror.clock.now, signal })

      expect(error).toBeNull()
      expect(rebuilt).toMatchObject({ rows: 2, views: 0 })
      expect(await rows('SELECT * FROM orders__lines')).toEqual([{ mine: 7 }])
      expect(await rows('SELECT lines FROM orders WHERE id = 1')).toEqual([
        { lines: '[{"sku":"b","price":1}]' },
      ])
    },
  )
})
