import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { forgetting } from '../../../helpers/forgetting.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { mirroredIds, runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { dump, openTestMirror } from '../../../helpers/test-mirror.ts'

const REFUSED = 'the token of organization acme was refused (401)'
const ORDERS = { organization: ACME.id, collection: 'orders' }

const secret = (id: number) => `"Secret-${id}-of-${ACME.name}-${'x'.repeat(40)}"`
const acmeItem = (id: number) => (id % 50 === 49 ? `{"no":${secret(id)}}` : `{"id":${id},"a":${secret(id)}}`)

/** Both organizations synced twice, so that there is a history, and rejects; rows are missed; acme, whose token was refused, has a budget of its own. */
async function createScene(count = 300) {
  const test = openTestMirror()
  for (const state of ['1', '2']) {
    const item = (id: number) => acmeItem(id).replace('{', `{"state":${state},"l":[{"s":${secret(id)}}],`)
    await runOnce(test, scriptedList({ ids: upTo(count), perPage: 100, item }))
    await runOnce(test, scriptedList({ ids: upTo(5) }), { job: jobOf({}, GLOBEX) })
  }
  test.connection.exec(`
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 1000)
    INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, reason)
    SELECT '${ACME.id}', 'orders', i, 'missed', 1, 'removed' FROM n
  `)
  const budget = { closedUntil: 0, known: null, waitingFor: null, waitingUntil: 0 }
  await test.tokens.budgets.compareAndSet(ACME.id, '0', () => budget)
  await test.store.writeShare({ budgetKey: ACME.id, at: 0, level: 1, version: 1 })
  await test.tokens.hold([ACME.id], 'a fingerprint', REFUSED, '2026-01-01T00:00:00.000Z')
  /** Another process that forgets; stopped after so many steps. */
  function forgetter(stopAfter = Number.POSITIVE_INFINITY) {
    let rests = 0
    return forgetting(test, (stop) => ++rests >= stopAfter && stop.abort())
  }
  /** How many rows of acme a table has. */
  const left = (table: string) => {
    const id = table.startsWith('sync') ? 'organization_id' : '_organization_id'
    return test.value(`SELECT count(*) FROM ${table} WHERE ${id} = ?`, ACME.id)
  }
  return { ...test, test, forgetter, left }
}

describe('forgetting', () => {
  it('leaves no trace of an organization in any table, and keeps the other one whole', async () => {
    const { test, forgetter, rows } = await createScene()
    const globex = () => rows('SELECT * FROM orders_raw WHERE _organization_id = ?', GLOBEX.id)
    const before = globex()

    const forgotten = await forgetter().job(ORDERS, false)
    await forgetter().organization(ACME.id)

    expect(forgotten).toBe(294)
    const { schema: _, sync_missing, ...tables } = dump(test)
    expect(sync_missing).toEqual([])
    // Another organization may be configured with it.
    expect(await test.tokens.heldReason('a fingerprint')).toBe('the token was refused (401)')
    expect(JSON.stringify(tables)).not.toMatch(new RegExp(`${ACME.id}|Secret|acme`))
    expect(globex()).toEqual(before)
    for (const end of ['', '-wal'])
      expect(fs.readFileSync(test.connection.name + end, 'latin1')).not.toContain('Secret')
    expect(rows('SELECT organization, rows, coverage FROM sync_status')).toEqual([
      { organization: 'globex', rows: 5, coverage: 'steady' },
    ])
  })

  it('that is stopped leaves a list that looks as if it was never read, and the same command does the rest, after a sync too, but for the rows of the configuration and the hold of a refused token', async () => {
    const { test, forgetter, left, rows } = await createScene(1300)
    const never = { as_of: null, coverage: null, fresh_as_of: null, newest: null, last_run_at: null }
    // Before anything but its runs has gone, and with some of its rows.
    for (const count of [1274, 274]) {
      await expect(forgetter(1).job(ORDERS, true)).rejects.toThrow(/the same command continues/)
      expect(left('orders')).toBe(count)
      expect(rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
        { rows: count, ...never },
      ])
    }
    const job = 'SELECT refresh, owner FROM sync_jobs WHERE organization_id = ?'
    expect(rows(job, ACME.id)).toEqual([{ refresh: null, owner: null }])
    expect([left('sync_runs'), await test.store.openWalks(jobOf())]).toEqual([0, []])
    const result = await runOnce(test, scriptedList({ ids: upTo(120), perPage: 40 }))
    expect(result).toMatchObject({ error: null, coverage: 'steady' })
    expect(mirroredIds(test)).toEqual(expect.arrayContaining(upTo(120)))
    expect(rows('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toEqual([
      { rows: left('orders') },
    ])

    await forgetter().job(ORDERS, true)
    await forgetter().organization(ACME.id)

    for (const table of ['orders', 'orders_history', 'sync_walks', 'sync_runs', 'sync_rejects'])
      expect([table, left(table)]).toEqual([table, 0])
    expect(await test.tokens.heldReason('a fingerprint')).toBe(REFUSED)
    expect(rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
      { organization: 'acme', rows: 0, as_of: null },
    ])
  })
})
