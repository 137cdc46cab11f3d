import path from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { removeMissing } from '../../../../src/store/core/missing.ts'
import { runRule, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { upTo } from '../../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { begin } from '../../stage.ts'

const EVENTS = 'SELECT id, change, at, changed_fields, before, after FROM orders_changes'

interface Event {
  organization: string
  id: number
  change: string
  at: string
  changed_fields: string | null
  before: string | null
  after: string | null
}

/** A mirror to which items are written, and from which they are removed, one by one. */
function createStage(test: TestMirror, organization = ACME) {
  const { connection, clock } = test
  return {
    async write(text: string, history = true): Promise<void> {
      await (await begin(test, jobOf({ history }, organization))).page(text)
    },
    remove(id: number, reason: string, history = true): void {
      connection
        .prepare(`INSERT INTO sync_missing VALUES (?, 'orders', ?, 'removable', 1, ?)`)
        .run(organization.id, String(id), reason)
      const at = new Date(clock.now()).toISOString()
      runRule(connection, removeMissing(SQLITE, jobOf({ history }, organization), 0, at))
    },
  }
}

const STEP = fc.record({
  organization: fc.constantFrom(ACME, GLOBEX),
  id: fc.integer({ min: 1, max: 3 }),
  what: fc.constantFrom('write', 'write', 'write', 'removed', 'out_of_scope'),
  // Often none, or backwards: events of the same time keep their order.
  pause: fc.constantFrom(0, 0, 1, 1000, -500),
})

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never

/** Plays the steps; returns what happened, as a witness writes it down. */
async function play(test: TestMirror, steps: readonly Step[]): Promise<Event[]> {
  const log: Event[] = []
  const lastOf = (organization: string, id: number) =>
    log.findLast((event) => event.organization === organization && event.id === id)
  await createStage(test).write('{"id":0}')
  const written = new Map([[ACME.id, test.clock.now()]])
  for (const [index, { organization, id, what, pause }] of steps.entries()) {
    const stage = createStage(test, organization)
    const last = lastOf(organization.id, id)
    const before = last?.after ?? null
    const after = what === 'write' ? `{"id":${id},"a":${index}}` : null
    if (before === null && after === null) continue
    // The pages of a list follow each other, and the versions of an item.
    const now = test.clock.now()
    const pageAt = Math.max(now, written.get(organization.id) ?? 0)
    if (after) written.set(organization.id, pageAt)
    const at = new Date(Math.max(after ? pageAt : now, Date.parse(last?.at ?? '2000'))).toISOString()
    if (after) await stage.write(after)
    else stage.remove(id, what)
    const change = before === null ? (last ? 'returned' : 'added') : after ? 'changed' : what
    const fields = change === 'changed' ? '["$.a"]' : null
    log.push({ organization: organization.id, id, change, at, changed_fields: fields, before, after })
    test.clock.advance(pause)
  }
  return log
}

describe('orders_changes', () => {
  it('names the fields that changed by their paths', async () => {
    const test = openTestMirror()
    const stage = createStage(test)
    await stage.write('{"id":1,"a.b":1,"x\\"y":2,"c":{"d":1,"same":1.10}}')
    await stage.write('{"id":1,"a.b":2,"x\\"y":3,"c":{"same":1.1}}')

    const [event] = test.rows(`${EVENTS} WHERE change = 'changed'`)

    expect(JSON.parse(String(event?.changed_fields))).toEqual(['$."a.b"', '$."x\\"y"', '$.c.d'])
  })

  it('tells of any history of two organizations, by seq, just what a witness wrote down, in the order in which it happened', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 20 }), async (steps) => {
        const test = openTestMirror()
        const log = await play(test, steps)
        const events = EVENTS.replace('id,', '_organization_id AS organization, id,')
        expect(test.rows(`${events} WHERE id > 0 ORDER BY seq`)).toEqual(log)
        // What returned is first seen then.
        const begun = new Map(
          log
            .filter(({ before }) => before === null)
            .map((event) => [event.organization + event.id, event.at]),
        )
        const seen = 'SELECT _organization_id || id AS item, _first_seen_at AS at FROM orders WHERE id > 0'
        for (const { item, at } of test.rows(seen)) expect(at).toBe(begun.get(String(item)))
        test.close()
      }),
      { numRuns: LONG ? 60 : 20 },
    )
  }, 60_000)

  it('tells of the row alone where no history is kept', async () => {
    const test = openTestMirror()
    const stage = createStage(test)
    for (const a of [1, 2]) await stage.write(`{"id":1,"a":${a}}`, false)
    await stage.write('{"id":2}', false)
    stage.remove(2, 'removed', false)

    expect(test.rows('SELECT id, change, before, after FROM orders_changes')).toEqual([
      { id: 1, change: 'changed', before: null, after: '{"id":1,"a":2}' },
    ])
  })

  it.each(["at >= '2026' ORDER BY at", 'seq > 5 ORDER BY seq'])(
    'finds events by %s through indexes alone, and sorts none',
    async (which) => {
      const test = openTestMirror()
      await createStage(test).write('{"id":1}')
      const sql = `SELECT * FROM orders_changes WHERE ${which}`

      const plan = test.rows(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => String(detail))

      expect(plan.filter((line) => /^SCAN (?!\()|TEMP B-TREE/.test(line))).toEqual([])
    },
  )

  it('gives no number twice after an earlier copy of the file took its place', async () => {
    const test = openTestMirror()
    await createStage(test).write('{"id":1,"a":1}')
    const copy = path.join(path.dirname(test.file), 'copy.db')
    test.connection.exec(`VACUUM INTO '${copy}'`)
    for (const a of [2, 3, 4])
      await (await begin(test)).page(...upTo(1000).map((id) => `{"id":${id},"a":${a}}`))
    const read = Number(test.value('SELECT max(seq) FROM orders_changes'))
    const { clock } = test
    clock.advance(1000)

    const restored = openTestMirror({ file: copy, clock })
    await createStage(restored).write('{"id":1,"a":4}')

    expect(restored.rows(`SELECT change, after FROM orders_changes WHERE seq > ${read}`)).toEqual([
      { change: 'changed', after: '{"id":1,"a":4}' },
    ])
  })
})
