import { describe, expect, it } from 'vitest'
import { GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../helpers/test-mirror.ts'

/** Two connections to one file, as of two processes; each walks the orders of an organization. */
async function twoWriters() {
  const first = openTestMirror()
  const second = openTestMirror({ file: first.file, clock: first.clock })
  const [acme, globex] = [await beginTestWalk(first, jobOf()), await beginTestWalk(second, jobOf({}, GLOBEX))]
  return { test: first, acme, globex }
}

describe('two processes that write to one collection', () => {
  it('number their events in the order in which they wrote them, whatever their clocks said', async () => {
    const { test, acme, globex } = await twoWriters()
    for (const a of [1, 2, 3]) {
      await acme.saveItems(`{"id":1,"a":${a}}`)
      test.clock.advance(-1000)
      await globex.saveItems(`{"id":1,"a":${a}}`)
    }

    const events = test.rows('SELECT seq, _organization_id AS org FROM orders_changes ORDER BY seq')
    expect(events.map(({ org }) => org === GLOBEX.id)).toEqual([false, true, false, true, false, true])
    expect(new Set(events.map(({ seq }) => seq)).size).toBe(6)
  })

  it('both notice that a column became REAL, a key TEXT, and a view wider', async () => {
    const { test, acme, globex } = await twoWriters()
    await acme.saveItems('{"id":1,"a":1,"lines":[{"n":1}]}')
    await globex.saveItems('{"id":1,"a":1}')
    await acme.saveItems('{"id":"x","a":0.5,"lines":[{"n":1,"m":1}]}')

    await globex.saveItems('{"id":2,"a":7,"lines":[{"n":0.5}]}')

    expect(test.rows('SELECT id, a FROM orders').map((row) => Object.values(row))).toEqual([
      ['1', 1],
      ['1', 1],
      ['x', 0.5],
      ['2', 7],
    ])
    expect(test.rows('SELECT n, m FROM orders__lines').map((row) => Object.values(row))).toEqual([
      [1, null],
      [1, 1],
      [0.5, null],
    ])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('both notice that a column holds a number that a double would round', async () => {
    const { test, acme, globex } = await twoWriters()
    await acme.saveItems('{"id":1,"a":1}')
    await globex.saveItems('{"id":1,"a":9007199254740993}')

    await acme.saveItems('{"id":2,"a":0.5}')

    expect(test.rows('SELECT CAST(a AS TEXT) AS a, a__text FROM orders')).toEqual([
      { a: '1', a__text: null },
      { a: '9007199254740993', a__text: null },
      { a: null, a__text: '0.5' },
    ])
  })
})
