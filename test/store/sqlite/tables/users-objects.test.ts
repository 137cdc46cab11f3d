import { describe, expect, it } from 'vitest'
import { makeConfigured } from '../../../../src/store/core/tables.ts'
import { runRule, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { createLongWork } from '../../../helpers/long-work.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const MADE = `
  CREATE INDEX my_index ON orders (total);
  CREATE INDEX my_history_index ON orders_history (_reason);
  CREATE VIEW my_view AS SELECT o.id, o.total, l.sku FROM orders AS o JOIN orders__lines AS l ON l._parent_id = o.id;
  CREATE VIEW my_events AS SELECT change, count(*) AS events FROM orders_changes GROUP BY change;
  CREATE VIRTUAL TABLE my_search USING fts5 (note);
  CREATE TRIGGER my_search_insert AFTER INSERT ON orders BEGIN INSERT INTO my_search (note) VALUES (new.note); END;
  CREATE TRIGGER my_search_delete AFTER DELETE ON orders BEGIN INSERT INTO my_search (note) VALUES ('gone ' || old.note); END;
`

const ITEM = '"note":"first","lines":[{"sku":"A"}]'

async function createScene() {
  const test = openTestMirror()
  const { connection } = test
  runRule(connection, makeConfigured(SQLITE, [{ name: 'orders', key: ['id'] }]))
  const save = async (...texts: string[]) => {
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems(...texts)
  }
  await save(`{"id":1,"total":1,${ITEM}}`)
  connection.exec(MADE)
  return {
    test,
    save,
    async forget() {
      await createLongWork(test).forgetting().job({ organization: ACME.id, collection: 'orders' }, true)
      // Pages are saved without a lease.
      connection.exec('UPDATE sync_jobs SET epoch = 0')
    },
  }
}

function objects({ rows }: TestMirror) {
  return rows(`SELECT name, sql FROM sqlite_schema WHERE name LIKE 'my@_%' ESCAPE '@' ORDER BY name`)
}

type Scene = Awaited<ReturnType<typeof createScene>>

describe('what users have put into the mirror', () => {
  it.each<[string, (scene: Scene) => Promise<unknown>]>([
    ['a column is added', ({ save }) => save('{"id":2,"new":"x"}')],
    [
      'many columns are added',
      ({ save }) => save('{"id":2,"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}'),
    ],
    ['a column becomes REAL', ({ save }) => save('{"id":2,"total":1.5}')],
    ['a value gets a column of text', ({ save }) => save('{"id":2,"total":"many"}')],
    ['a key becomes TEXT', ({ save }) => save('{"id":"two"}')],
    ['an array gets a field', ({ save }) => save('{"id":2,"lines":[{"sku":"B","colour":"red"}]}')],
    ['everything is forgotten', ({ forget }) => forget()],
  ])('stays, and works, when %s', async (_what, happen) => {
    const scene = await createScene()
    const before = objects(scene.test)

    await happen(scene)
    await scene.save(`{"id":9,"total":2,${ITEM.replace('first', 'later')}}`)

    expect(objects(scene.test)).toEqual(before)
    expect(scene.test.rows('SELECT sku FROM my_view WHERE total = 2')).toEqual([{ sku: 'A' }])
    expect(scene.test.value(`SELECT events FROM my_events WHERE change = 'added'`)).toBeGreaterThan(0)
    expect(scene.test.rows(`SELECT note FROM my_search WHERE my_search MATCH 'later'`)).toEqual([
      { note: 'later' },
    ])
    expect(scene.test.rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })
})
