import { describe, expect, it } from 'vitest'
import { forgetting } from '../../../helpers/forgetting.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { mirroredIds, runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { dump, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const ACME_ORDERS = { organization: ACME.id, collection: 'orders' }

/** Another process that forgets; stopped after so many steps. */
function forgetterOf(test: TestMirror, stopAfter = Number.POSITIVE_INFINITY) {
  let rests = 0
  return forgetting(test, (stop) => ++rests >= stopAfter && stop.abort())
}

const secret = (id: number) => `"Secret-${id}-of-${ACME.name}-${'x'.repeat(40)}"`
const acmeItem = (id: number) => (id % 50 === 49 ? `{"no":${secret(id)}}` : `{"id":${id},"a":${secret(id)}}`)

/** Both organizations synced twice, so that there is a history, and rejects. */
async function createScene(count = 300) {
  const test = openTestMirror()
  for (const state of ['1', '2']) {
    const item = (id: number) => acmeItem(id).replace('{', `{"state":${state},"l":[{"s":${secret(id)}}],`)
    await runOnce(test, scriptedList({ ids: upTo(count), perPage: 100, item }))
    await runOnce(test, scriptedList({ ids: upTo(5) }), { job: jobOf({}, GLOBEX) })
  }
  return test
}

describe('forgetting', () => {
  it('leaves no trace of an organization in any table, and keeps the other one whole', async () => {
    const test = await createScene()
    const globex = () => test.rows('SELECT * FROM orders_raw WHERE _organization_id = ?', GLOBEX.id)
    const before = globex()
    // As after a walk that missed a row.
    test.connection.exec(`
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, reason)
      VALUES ('${ACME.id}', 'orders', '7', 'missed', 1, 'removed')
    `)

    await test.tokens.hold([ACME.id], 'a fingerprint', 'refused', '2026-01-01T00:00:00.000Z')

    const forgotten = await forgetterOf(test).job(ACME_ORDERS, false)
    await forgetterOf(test).organization(ACME.id)

    for (const table of ['sync_missing', 'sync_refused_tokens'])
      expect(test.value(`SELECT count(*) FROM ${table}`)).toBe(0)
    expect(forgotten).toEqual({ rows: 294, versions: 294, rejects: 6 + 6, walks: 2, runs: 2 })
    const { schema: _, ...tables } = dump(test)
    expect(JSON.stringify(tables)).not.toMatch(new RegExp(`${ACME.id}|Secret|acme`))
    expect(globex()).toEqual(before)
    expect(test.rows('SELECT organization, rows, coverage FROM sync_status')).toEqual([
      { organization: 'globex', rows: 5, coverage: 'steady' },
    ])
  })

  it('that is stopped leaves a list that looks as if it was never read', async () => {
    const test = await createScene(1300)

    await expect(forgetterOf(test, 1).job(ACME_ORDERS, true)).rejects.toThrow(/the same command continues/)

    const [status] = test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)
    const left = test.value('SELECT count(*) FROM orders WHERE _organization_id = ?', ACME.id)
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(1274)
    expect(status).toMatchObject({ rows: left, as_of: null, coverage: null, last_run_at: null })
    const kept = 'SELECT refresh, fresh_as_of, newest FROM sync_jobs WHERE organization_id = ?'
    expect(Object.values(test.rows(kept, ACME.id)[0] ?? {})).toEqual([null, null, null])
    expect(test.value('SELECT count(*) FROM sync_runs WHERE organization_id = ?', ACME.id)).toBe(0)
    expect(await test.store.openWalks(jobOf())).toEqual([])
    expect(test.value('SELECT owner FROM sync_jobs WHERE organization_id = ?', ACME.id)).toBeNull()
  })

  it.each([
    ['continues when it runs again', false],
    ['continues after a sync in between', true],
  ])('%s', async (_, hasSyncBetween) => {
    const test = await createScene(1300)
    await expect(forgetterOf(test, 1).job(ACME_ORDERS, true)).rejects.toThrow(/the same command continues/)
    if (hasSyncBetween) {
      const result = await runOnce(test, scriptedList({ ids: upTo(120), perPage: 40 }))
      expect(result).toMatchObject({ error: null, coverage: 'steady' })
      expect(mirroredIds(test)).toEqual(expect.arrayContaining(upTo(120)))
      expect(test.value('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toBe(
        test.value('SELECT count(*) FROM orders WHERE _organization_id = ?', ACME.id),
      )
    }

    await forgetterOf(test).job(ACME_ORDERS, true)

    for (const table of ['orders', 'orders_history'])
      expect(test.value(`SELECT count(*) FROM ${table} WHERE _organization_id = ?`, ACME.id)).toBe(0)
    for (const table of ['sync_walks', 'sync_runs', 'sync_rejects'])
      expect(test.value(`SELECT count(*) FROM ${table} WHERE organization_id = ?`, ACME.id)).toBe(0)
    expect(
      test.value('SELECT count(*) FROM sync_pages WHERE walk_id NOT IN (SELECT id FROM sync_walks)'),
    ).toBe(0)
    expect(test.value('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toBe(0)
  })

  it('keeps the rows of the configuration, and the hold of a refused token', async () => {
    const test = await createScene(10)
    await test.tokens.hold([ACME.id], 'a fingerprint', 'refused', '2026-01-01T00:00:00.000Z')

    await forgetterOf(test).job(ACME_ORDERS, true)
    await forgetterOf(test).organization(ACME.id)

    const hold = test.tokens.holdOf('a fingerprint')
    await hold.refresh()
    expect(hold.heldReason()).toBe('refused')
    expect(test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
      { organization: 'acme', rows: 0, as_of: null },
    ])
  })
})
