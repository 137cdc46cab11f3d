import { beforeAll, describe, expect, it } from 'vitest'
import { ACME, createScene } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// Users may put views of their own under the names of ours, or beside them.

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene({
    list: [{ id: 1, items: [{ sku: 'a' }] }],
    settings: { publish: 'copy.db' },
  }))
  await workspace.run(['sync'])
  workspace.change(`
    DROP VIEW orders__items;
    CREATE VIEW orders__items AS SELECT * FROM left_long_ago;
    DROP VIEW orders_changes;
    CREATE VIEW orders_changes AS SELECT id, _changed_at AS at FROM orders;
    CREATE VIEW orders__mine AS SELECT _organization_id, 'mine' AS _organization, id FROM orders;
    CREATE TABLE orders__table (name TEXT PRIMARY KEY, _organization_id TEXT) WITHOUT ROWID;
    INSERT INTO orders__table SELECT 'kept', _organization_id FROM orders;
  `)
})

/** A view of a user, in this format. */
async function mine(format: string): Promise<string> {
  return (await workspace.run(['export', 'orders__mine', '--format', format])).stdout
}

describe('a view of a user under one of our names', () => {
  it('that cannot be read is refused by export with 2', async () => {
    const { code, stdout, stderr } = await workspace.run(['export', 'orders__items', '--format', 'csv'])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/no such table: .*left_long_ago/)
  })

  it('does not keep the published file from being made', async () => {
    expect(await workspace.run(['sync', '--refresh'])).toMatchObject({ code: 0 })

    const sql = "SELECT name, type FROM sqlite_schema WHERE name LIKE 'orders\\_\\_%' ESCAPE '\\'"
    const { stdout } = await workspace.run(['query', sql, '--format', 'csv', '--database', 'copy.db'])
    expect(stdout.split('\n').toSorted()).toEqual([
      '',
      'name,type',
      'orders__items,view',
      'orders__mine,table',
      'orders__table,table',
    ])
  })

  it('is exported as it is where it says whose its rows are', async () => {
    expect(await mine('csv')).toBe(`_organization_id,_organization,id\n${ACME.id},mine,1\n`)
    expect(await mine('ndjson')).toBe(`{"_organization_id":"${ACME.id}","_organization":"mine","id":1}\n`)
    const table = await workspace.run(['export', 'orders__table', '--format', 'ndjson'])
    expect(table.stdout).toBe(`{"name":"kept","_organization_id":"${ACME.id}"}\n`)
  })
})
