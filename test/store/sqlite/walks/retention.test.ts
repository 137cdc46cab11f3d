import { describe, expect, it } from 'vitest'
import type { Job } from '../../../../src/sync/types.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { pageOf } from '../../../helpers/pages.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const DAY_MS = 86_400_000

/** A run over so many items with this value. */
function runWith(test: TestMirror, job: Job, value: number, count: number) {
  const texts = Array.from({ length: count }, (_, index) => `{"id":${index + 1},"value":${value}}`)
  const source = {
    refusal: async () => null,
    limit: () => null,
    close: async () => {},
    fetchPage: async () => pageOf(texts),
  }
  return runOnce(test, { source }, { job })
}

/**
 * What is left of the history of items that changed daily from day 1 to day 4, by organization and last day.
 */
async function lived(histories: Record<string, Job['collection']['history']>, count = 2) {
  const test = openTestMirror()
  const jobs = [ACME, GLOBEX].map((organization) =>
    jobOf({ history: histories[organization.name] ?? true }, organization),
  )
  for (let day = 0; day <= 4; day++) {
    for (const job of jobs) await runWith(test, job, day, count)
    test.clock.advance(DAY_MS)
  }
  const left = test.rows(`
    SELECT name, json_group_array(day) AS days
    FROM (
      SELECT DISTINCT name, CAST(julianday(_valid_to) - julianday('2026-11-20T08:00:00.000Z') + 0.01 AS INTEGER) AS day
      FROM orders_history JOIN organizations ON organizations.id = _organization_id
      ORDER BY name, day
    )
    GROUP BY name
  `)
  return { test, left: Object.fromEntries(left.map(({ name, days }) => [name, JSON.parse(String(days))])) }
}

describe('a superseded version', () => {
  it('is deleted after the time of its organization, by the first run that finds it too old', async () => {
    const { left } = await lived({ acme: 2 * DAY_MS, globex: true })

    expect(left).toEqual({ acme: [2, 3, 4], globex: [1, 2, 3, 4] })
  })

  it('that exists already stays when none are kept any longer', async () => {
    const { test } = await lived({ acme: true })

    await runWith(test, jobOf({ history: false }), 9, 2)

    expect(test.value('SELECT count(*) FROM orders_history WHERE _organization_id = ?', ACME.id)).toBe(8)
  })

  it('is found by its end in a mirror of an earlier version, which had no index for that', async () => {
    const { test } = await lived({})
    test.connection.exec('DROP INDEX orders_history_by_end')

    await runWith(test, jobOf({ history: DAY_MS }), 9, 2)

    const plan = test.rows(
      `EXPLAIN QUERY PLAN SELECT _rowid_ FROM orders_history WHERE _organization_id = '' AND _valid_to < '' ORDER BY _valid_to`,
    )
    expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining('orders_history_by_end')])
    expect(test.value(`SELECT count(*) FROM orders_history WHERE _organization_id = ?`, ACME.id)).toBe(4)
  })
})
