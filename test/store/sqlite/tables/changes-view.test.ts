import path from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { removeMissing } from '../../../../src/store/core/missing.ts'
import { runRule, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const EVENTS = 'SELECT id, change, at, changed_fields, before, after FROM orders_changes'

interface Event {
  id: number
  change: string
  at: string
  changed_fields: string | null
  before: string | null
  after: string | null
}

/** A mirror to which items are written, and from which they are removed, one by one. */
function createStage(test: TestMirror, organization = ACME) {
  const history = { keep: true as boolean | number }
  return {
    history,
    async write(text: string): Promise<void> {
      const { saveItems } = await beginTestWalk(test, jobOf({ history: history.keep }, organization))
      await saveItems(text)
    },
    remove(id: number, reason: string): void {
      const { connection } = test
      connection
        .prepare(`INSERT INTO sync_missing VALUES (?, 'orders', ?, 'removable', 1, '', ?)`)
        .run(organization.id, String(id), reason)
      const job = jobOf({ history: history.keep }, organization)
      const at = new Date(test.clock.now()).toISOString()
      runRule(connection, removeMissing(SQLITE, job, 0, at))
    },
  }
}

const STEP = fc.record({
  id: fc.integer({ min: 1, max: 3 }),
  what: fc.constantFrom('write', 'write', 'write', 'removed', 'out_of_scope'),
  // Often none, or backwards: events of the same time keep their order.
  pause: fc.constantFrom(0, 0, 1, 1000, -500),
})

/** Plays the steps; returns what happened, as a witness writes it down. */
async function play(
  test: TestMirror,
  steps: { id: number; what: string; pause: number }[],
  keeps: (step: number) => boolean,
): Promise<Event[]> {
  const stage = createStage(test)
  await stage.write('{"id":0}')
  const [live, last, gone, log] = [
    new Map<number, string>(),
    new Map<number, string>(),
    new Set<number>(),
    [] as Event[],
  ]
  for (const [index, { id, what, pause }] of steps.entries()) {
    stage.history.keep = keeps(index)
    const at = [new Date(test.clock.now()).toISOString(), last.get(id) ?? ''].toSorted().at(-1) ?? ''
    const before = live.get(id) ?? null
    const after = what === 'write' ? `{"id":${id},"a":${index}}` : null
    if (before === null && after === null) continue
    if (after) await stage.write(after)
    else stage.remove(id, what)
    const change = before === null ? (gone.has(id) ? 'returned' : 'added') : after ? 'changed' : what
    log.push({ id, change, at, changed_fields: change === 'changed' ? '["$.a"]' : null, before, after })
    last.set(id, at)
    if (after) live.set(id, after)
    else live.delete(id)
    if (!after) gone.add(id)
    test.clock.advance(pause)
  }
  return log
}

/** The same keys in two organizations: other versions between those of one; a first version after a change, a removal, and before a removal. */
const OF_TWO: [organization: typeof ACME, id: number, what: 'write' | 'removed'][] = [
  [ACME, 1, 'write'],
  [ACME, 1, 'write'],
  [GLOBEX, 1, 'write'],
  [GLOBEX, 1, 'write'],
  [GLOBEX, 1, 'write'],
  [ACME, 1, 'write'],
  [ACME, 2, 'write'],
  [ACME, 2, 'write'],
  [GLOBEX, 2, 'write'],
  [ACME, 3, 'write'],
  [ACME, 3, 'removed'],
  [GLOBEX, 3, 'write'],
  [ACME, 4, 'write'],
  [ACME, 4, 'write'],
  [GLOBEX, 4, 'write'],
  [GLOBEX, 4, 'removed'],
]

const inOrder = (events: readonly unknown[]) => events.map((event) => JSON.stringify(event)).toSorted()

describe('orders_changes', () => {
  it.each<[string, string, string[]]>([
    ['{"n":1.10}', '{"n":1.1,"m":1}', ['$.m']],
    ['{"n":12345678901234567890}', '{"n":12345678901234567891}', ['$.n']],
    ['{"n":{"b":1,"a":[{"x":1,"y":2}]}}', '{"n":{"a":[{"y":2.0,"x":1e0}],"b":2}}', ['$.n.b']],
    ['{"l":[1,2],"o":{"a":1}}', '{"l":[2,1],"o":3}', ['$.l', '$.o']],
    ['{"a.b":1,"x\\"y":2}', '{"a.b":2,"x\\"y":3}', ['$."a.b"', '$."x\\"y"']],
    ['{"gone":1,"was":null}', '{"was":1}', ['$.gone', '$.was']],
  ])('names the fields that changed from %s to %s', async (before, after, fields) => {
    const test = openTestMirror()
    const stage = createStage(test)
    for (const text of [before, after]) await stage.write(text.replace('{', '{"id":1,'))

    const [event] = test.rows(`${EVENTS} WHERE change = 'changed'`)

    expect(JSON.parse(String(event?.changed_fields))).toEqual(fields)
  })

  it('tells of any history just what a witness wrote down', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 14 }), async (steps) => {
        const test = openTestMirror()
        const log = await play(test, steps, () => true)
        expect(inOrder(test.rows(`${EVENTS} WHERE id > 0`))).toEqual(inOrder(log))
        // What returned is first seen then.
        const begun = new Map(log.filter(({ before }) => before === null).map(({ id, at }) => [id, at]))
        for (const { id, at } of test.rows('SELECT id, _first_seen_at AS at FROM orders WHERE id > 0'))
          expect(at).toBe(begun.get(Number(id)))
        test.close()
      }),
      { numRuns: LONG ? 60 : 20 },
    )
  }, 60_000)

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

  it.each([
    { pause: 0, keeps: true },
    { pause: 1000, keeps: true },
    { pause: 1000, keeps: false },
  ])('keeps organizations apart: %o', async ({ pause, keeps }) => {
    /** What a mirror of these organizations tells, with the same times. */
    async function eventsOf(...organizations: (typeof ACME)[]) {
      const test = openTestMirror()
      for (const [step, [organization, id, what]] of OF_TWO.entries()) {
        const stage = createStage(test, organization)
        stage.history.keep = keeps || organization === ACME
        const isThere = organizations.includes(organization)
        if (isThere && what === 'removed') stage.remove(id, what)
        else if (isThere) await stage.write(`{"id":${id},"a":${step}}`)
        test.clock.advance(pause)
      }
      const events = EVENTS.replace('id', '_organization_id, id')
      return inOrder(test.rows(events))
    }

    const [ofAcme, ofGlobex] = [await eventsOf(ACME), await eventsOf(GLOBEX)]

    expect(await eventsOf(ACME, GLOBEX)).toEqual([...ofAcme, ...ofGlobex].toSorted())
  })

  it('gives no number twice after an earlier copy of the file took its place', async () => {
    const test = openTestMirror()
    await createStage(test).write('{"id":1,"a":1}')
    const copy = path.join(path.dirname(test.file), 'copy.db')
    test.connection.exec(`VACUUM INTO '${copy}'`)
    for (const a of [2, 3, 4]) await createStage(test).write(`{"id":1,"a":${a}}`)
    const read = Number(test.value('SELECT max(seq) FROM orders_changes'))
    const { clock } = test
    clock.advance(1000)

    const restored = openTestMirror({ file: copy, clock })
    await createStage(restored).write('{"id":1,"a":4}')

    expect(restored.rows(`SELECT change, after FROM orders_changes WHERE seq > ${read}`)).toEqual([
      { change: 'changed', after: '{"id":1,"a":4}' },
    ])
  })

  it.each(OUTSIDE_READERS)('can be read by $name', async ({ read }) => {
    const test = openTestMirror()
    const stage = createStage(test)
    for (const a of [1, 2]) await stage.write(`{"id":1,"a":${a}}`)

    expect(read(test.file, `${EVENTS} ORDER BY at, change`)).toEqual(
      test.rows(`${EVENTS} ORDER BY at, change`),
    )
  })
})
