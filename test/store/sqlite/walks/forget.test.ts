import { describe, expect, it } from 'vitest'
import { forgetting } from '../../../helpers/forgetting.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { mirroredIds, runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { dump, openTestMirror } from '../../../helpers/test-mirror.ts'

const ORDERS = { organization: ACME.id, collection: 'orders' }

const secret = (id: number) => `"Secret-${id}-of-${ACME.name}-${'x'.repeat(40)}"`
const acmeItem = (id: number) => (id % 50 === 49 ? `{"no":${secret(id)}}` : `{"id":${id},"a":${secret(id)}}`)

/** Both organizations synced twice, so that there is a history, and rejects; a row is missed, and acme's token was refused. */
async function createScene(count = 300) {
  const test = openTestMirror()
  for (const state of ['1', '2']) {
    const item = (id: number) => acmeItem(id).replace('{', `{"state":${state},"l":[{"s":${secret(id)}}],`)
    await runOnce(test, scriptedList({ ids: upTo(count), perPage: 100, item }))
    await runOnce(test, scriptedList({ ids: upTo(5) }), { job: jobOf({}, GLOBEX) })
  }
  test.connection.exec(`
    INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, reason)
    VALUES ('${ACME.id}', 'orders', '7', 'missed', 1, 'removed')
  `)
  await test.tokens.hold([ACME.id], 'a fingerprint', 'the token of acme', '2026-01-01T00:00:00.000Z')
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

    expect(forgotten).toEqual({ rows: 294, versions: 294, rejects: 6 + 6, walks: 2, runs: 2 })
    const { schema: _, sync_missing, ...tables } = dump(test)
    expect(sync_missing).toEqual([])
    expect(JSON.stringify(tables)).not.toMatch(new RegExp(`${ACME.id}|Secret|acme`))
    expect(globex()).toEqual(before)
    expect(rows('SELECT organization, rows, coverage FROM sync_status')).toEqual([
      { organization: 'globex', rows: 5, coverage: 'steady' },
    ])
  })

  it.each([false, true])(
    'that is stopped leaves a list that looks as if it was never read, and the same command does the rest, after a sync too (%j)',
    async (hasSyncBetween) => {
      const { test, forgetter, left, rows, value } = await createScene(1300)
      await expect(forgetter(1).job(ORDERS, true)).rejects.toThrow(/the same command continues/)

      expect(left('orders')).toBeGreaterThan(0)
      expect(left('orders')).toBeLessThan(1274)
      expect(rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
        {
          rows: left('orders'),
          as_of: null,
          coverage: null,
          fresh_as_of: null,
          newest: null,
          last_run_at: null,
        },
      ])
      const job = 'SELECT refresh, owner FROM sync_jobs WHERE organization_id = ?'
      expect(rows(job, ACME.id)).toEqual([{ refresh: null, owner: null }])
      expect([left('sync_runs'), await test.store.openWalks(jobOf())]).toEqual([0, []])
      if (hasSyncBetween) {
        const result = await runOnce(test, scriptedList({ ids: upTo(120), perPage: 40 }))
        expect(result).toMatchObject({ error: null, coverage: 'steady' })
        expect(mirroredIds(test)).toEqual(expect.arrayContaining(upTo(120)))
        expect(rows('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toEqual([
          { rows: left('orders') },
        ])
      }

      await forgetter().job(ORDERS, true)

      for (const table of ['orders', 'orders_history', 'sync_walks', 'sync_runs', 'sync_rejects'])
        expect([table, left(table)]).toEqual([table, 0])
      expect(value('SELECT count(*) FROM sync_pages WHERE walk_id NOT IN (SELECT id FROM sync_walks)')).toBe(
        0,
      )
    },
  )

  it('keeps the hold of a refused token, which somebody else may be configured with, and the rows of the configuration', async () => {
    const { forgetter, rows, tokens } = await createScene(10)

    await forgetter().job(ORDERS, true)
    await forgetter().organization(ACME.id)

    expect(await tokens.heldReason('a fingerprint')).toBe('the token of acme')
    expect(rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
      { organization: 'acme', rows: 0, as_of: null },
    ])
  })
})
