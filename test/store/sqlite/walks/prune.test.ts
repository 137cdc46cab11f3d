import { describe, expect, it } from 'vitest'
import type { Job } from '../../../../src/sync/types.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { pageOf } from '../../../helpers/pages.ts'
import { mirroredIds, runOnce, runs, walks } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { KEEP_RUNS_MS, openTestMirror, SYNC, type TestMirror } from '../../../helpers/test-mirror.ts'

const DAY_MS = 86_400_000
const BACKFILL = { ...SYNC, origin: 'backfill', resumeWithin: null } as const

describe('what runs leave', () => {
  it('is deleted when older than keepRuns, except the last run and the last complete full walk', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(4) })
    await runOnce(test, list)
    test.clock.advance(DAY_MS)
    await runOnce(test, list)
    const failing = scriptedList({ ids: upTo(4), before: () => Promise.reject(new Error('down')) })

    test.clock.advance(KEEP_RUNS_MS)
    await runOnce(test, failing)
    const afterFailure = runs(test).map(({ id }) => id)
    test.clock.advance(1)
    await runOnce(test, list)

    expect(afterFailure).toEqual([1, 2, 3])
    expect(runs(test).map(({ id, status }) => [id, status])).toEqual([
      [3, 'failed'],
      [4, 'succeeded'],
    ])
    expect(walks(test).map(({ id, status }) => [id, status])).toEqual([[3, 'complete']])
    expect(test.value('SELECT count(*) FROM sync_pages')).toBe(0)
    expect(mirroredIds(test)).toEqual([1, 2, 3, 4])
  })

  it('stays if it is the last complete full walk, though that is old and not trusted', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(8) })
    await runOnce(test, list)
    list.ids = [...upTo(6), 1]
    expect(await runOnce(test, list)).toMatchObject({ coverage: 'drifted' })
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)

    await runOnce(test, list, { plan: { ...BACKFILL, kind: 'partial', firstPage: 2 } })

    expect(walks(test).map(({ id }) => id)).toEqual([1, 2, 3])
    expect(test.value('SELECT coverage FROM sync_status WHERE organization_id = ?', ACME.id)).toBe('drifted')
  })

  it('is kept as long as it tells why rows will be missing', async () => {
    const test = openTestMirror()
    const even = { job: jobOf({ filters: { only: 'even' } }) }
    const list = scriptedList({ ids: upTo(8) })
    await runOnce(test, list)
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)
    // One item twice and another one missing: it drifts.
    list.ids = [2, 4, 6, 2]
    expect(await runOnce(test, list, even)).toMatchObject({ coverage: 'drifted' })
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)
    list.ids = [2, 4, 6, 8]

    for (let count = 0; count < 2; count++) await runOnce(test, list, even)

    const gone = test.rows('SELECT id, _reason AS reason FROM orders_history ORDER BY id')
    expect(gone).toEqual([1, 3, 5, 7].map((id) => ({ id, reason: 'out_of_scope' })))
    expect(walks(test).map(({ id }) => id)).toEqual([3, 4])
  })

  it('goes with the next one where a walk of a short list found nothing in place of a refresh', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(8) })
    await runOnce(test, list)
    await runOnce(test, list, { instead: 'newest' })
    list.ids.push(1000)
    await runOnce(test, list, { instead: 'newest' })
    const failing = scriptedList({ ids: list.ids, before: () => Promise.reject(new Error('down')) })
    await runOnce(test, failing, { instead: 'newest' })

    await runOnce(test, list, { instead: 'newest' })

    const left = runs(test).map(({ status, rows_added: added }) => [status, added])
    expect(left).toEqual([
      ['succeeded', 8],
      ['succeeded', 1],
      ['failed', 0],
      ['succeeded', 0],
    ])
    expect(walks(test).filter(({ status }) => status === 'complete')).toHaveLength(3)
  })

  it('stays where such a walk removed a row, or one was added before it was interrupted', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(8) })
    const refresh = (from = list) => runOnce(test, from, { instead: 'newest' })
    await runOnce(test, list)
    list.ids.pop()
    for (let count = 0; count < 3; count++) await refresh()
    list.ids.unshift(1000)
    const breaking = scriptedList({
      ids: list.ids,
      before: (answer) => {
        if (answer === 2) throw new Error('the server broke down')
      },
    })
    await refresh(breaking)

    for (let count = 0; count < 3; count++) await refresh()

    const found = runs(test).map((run) => [run.walk_id, run.status, run.rows_added, run.rows_removed])
    expect(found).toEqual([
      [1, 'succeeded', 8, 0],
      [3, 'succeeded', 0, 1],
      [5, 'failed', 1, 0],
      [5, 'succeeded', 0, 0],
      [7, 'succeeded', 0, 0],
    ])
    expect(walks(test).map(({ id }) => id)).toEqual([1, 3, 5, 7])
  })

  it('keeps what others read for an interrupted backfill for three days, and trusts it no longer then', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(6) })
    const breaking = scriptedList({
      ids: upTo(6),
      before: (answer) => {
        if (answer === 2) throw new Error('the server broke down')
      },
    })
    const noted = () => Number(test.value('SELECT count(*) FROM sync_refreshed'))
    await runOnce(test, breaking, { plan: BACKFILL, trigger: 'backfill' })
    for (let count = 1; count <= 4; count++) await runOnce(test, list)
    const kept = noted()

    test.clock.advance(3 * DAY_MS + 1)
    await runOnce(test, list)
    const after = noted()
    const resumed = await runOnce(test, scriptedList({ ids: upTo(5) }), {
      plan: BACKFILL,
      trigger: 'backfill',
    })

    expect([kept, after]).toEqual([6, 0])
    expect(resumed).toMatchObject({ error: null, untrusted: expect.stringContaining('three days') })
    expect(test.value('SELECT count(*) FROM sync_missing')).toBe(0)
  })
})

/** A run over so many items with this value. */
function runWith(test: TestMirror, job: Job, value: number, count: number) {
  const texts = Array.from({ length: count }, (_, index) => `{"id":${index + 1},"value":${value}}`)
  const source = {
    refusal: async () => null,
    limit: () => null,
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
})
