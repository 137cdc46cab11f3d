import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { selectRows, seqWindows } from '../../../src/store/core/selection.ts'
import { SQLITE, withCasts } from '../../../src/store/sqlite/driver.ts'

/** The events that are read at once, and how many questions were asked. */
function readAll(since: bigint, events: readonly bigint[]) {
  const reads: bigint[][] = []
  const windows = seqWindows(since, (window) => window)
  let questions = 0
  for (let next = windows.next(); !next.done; questions++) {
    const { ask, after, upTo, most } = next.value
    const found = events.filter((seq) => seq > after && (upTo === null || seq <= upTo))
    if (ask === 'read') reads.push(found)
    next = windows.next(Math.min(found.length, most))
  }
  return { reads, questions }
}

/** Pages of 25 events, each with a number. */
const paged = (count: number, from: bigint, step: bigint) =>
  Array.from({ length: count }, (_, index) => from + BigInt(Math.floor(index / 25)) * step)

describe('events after a number', () => {
  it.each<[string, bigint, bigint[]]>([
    ['none', 0n, []],
    ['one of now, for a reader that has read nothing', 0n, [1_795_161_600_000n]],
    ['many of a minute', 0n, paged(60_000, 1_795_161_600_000n, 25n)],
    ['few of each day', 1_795_000_000_000n, paged(5000, 1_795_161_600_000n, 86_400_000n)],
    [
      'a first reading, then years without one',
      0n,
      [...paged(9000, 1_700_000_000_000n, 1n), 1_795_161_600_000n],
    ],
    ['more in one step than are read at once', 7n, Array.from({ length: 7000 }, () => 8n)],
  ])('are read once each, in order, some at a time: %s', (_what, since, events) => {
    const { reads, questions } = readAll(since, events)

    expect(reads.flat()).toEqual(events)
    const tooMany = reads.filter((read) => read.length > 5000 && new Set(read).size > 1)
    expect(tooMany).toEqual([])
    expect(questions).toBeLessThan(60 + events.length / 50)
  })

  it('are read once each, whatever their numbers', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: 0n, max: 2n ** 53n })),
        fc.bigInt({ min: 0n, max: 2n ** 53n }),
        (some, since) => {
          const events = some.toSorted((a, b) => (a < b ? -1 : 1))

          expect(readAll(since, events).reads.flat()).toEqual(events.filter((seq) => seq > since))
        },
      ),
    )
  })

  it('are none of two windows and none between them', () => {
    const connection = new Database(':memory:')
    connection.exec(`
      CREATE TABLE organizations (id, name);
      CREATE TABLE events (seq, _organization_id);
      INSERT INTO events VALUES (1, 'a'), (3600000, 'b'), (3600001, 'c');
      CREATE VIEW orders_changes AS SELECT * FROM events;
    `)
    const columns = [
      { name: 'seq', type: 'INTEGER' },
      { name: '_organization_id', type: 'TEXT' },
    ]
    const listed = { name: 'orders_changes', collection: 'orders', keys: [], isTable: false, columns }
    const { parts } = selectRows(SQLITE, listed, { organizationIds: null, since: null, sinceSeq: '0' })
    const found: unknown[][] = []

    for (let next = parts.next(); !next.done; ) {
      const { ask, text, values } = next.value
      const rows = connection.prepare(withCasts(text)).raw().all(values) as unknown[][]
      if (ask === 'read') found.push(...rows)
      next = parts.next(ask === 'count' ? Number(rows[0]?.[0]) : 0)
    }

    expect(found.map(([seq]) => seq)).toEqual([1, 3_600_000, 3_600_001])
  })
})
