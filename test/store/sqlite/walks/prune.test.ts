import { beforeEach, describe, expect, it } from 'vitest'
import type { JobOptions } from '../../../../src/sync/job.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { mirroredIds, runOnce, runs, walks } from '../../../helpers/run-once.ts'
import { type ScriptedList, scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import {
  KEEP_RUNS_MS,
  openTestMirror,
  type Row,
  SYNC,
  type TestMirror,
} from '../../../helpers/test-mirror.ts'

const DAY_MS = 86_400_000
const BACKFILL = { ...SYNC, origin: 'backfill', resumeWithin: null } as const

const idsOf = (found: readonly Row[]) => found.map(({ id }) => id)

describe('what runs leave', () => {
  let test: TestMirror
  let list: ScriptedList
  let isDown: (answer: number) => boolean
  beforeEach(() => {
    test = openTestMirror()
    isDown = () => false
    const before = (answer: number) => {
      if (isDown(answer)) throw new Error('the server broke down')
    }
    list = scriptedList({ ids: upTo(8), before })
  })

  /** A run over the list as it then stands. */
  const sync = (options?: Partial<JobOptions>) => runOnce(test, list, options)
  /** A run whose server breaks down at this answer of it. */
  async function broken(at: number, options?: Partial<JobOptions>): Promise<void> {
    const last = list.asked.length
    isDown = (answer) => answer === last + at
    await sync(options)
    isDown = () => false
  }
  const shortList = { instead: 'newest' } as const

  it('is deleted when older than keepRuns, except the last run and the last complete full walk', async () => {
    await sync()
    test.clock.advance(DAY_MS)
    await sync()

    test.clock.advance(KEEP_RUNS_MS)
    await broken(1)
    const afterFailure = idsOf(runs(test))
    test.clock.advance(1)
    await sync()

    expect(afterFailure).toEqual([1, 2, 3])
    expect(runs(test).map(({ id, status }) => [id, status].join(' '))).toEqual(['3 failed', '4 succeeded'])
    expect(walks(test).map(({ id, status }) => [id, status].join(' '))).toEqual(['4 complete'])
    expect(test.value('SELECT count(*) FROM sync_pages')).toBe(0)
    expect(mirroredIds(test)).toEqual(upTo(8))
  })

  it('stays if it is the last complete full walk, though that is old and not trusted', async () => {
    await sync()
    list.ids = [...upTo(6), 1]
    expect(await sync()).toMatchObject({ coverage: 'drifted' })
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)

    await sync({ plan: { ...BACKFILL, kind: 'partial', firstPage: 2 } })

    expect(idsOf(walks(test))).toEqual([1, 2, 3])
    expect(test.value("SELECT coverage FROM sync_status WHERE organization = 'acme'")).toBe('drifted')
  })

  it('is kept as long as it tells why rows will be missing', async () => {
    const even = { job: jobOf({ filters: { only: 'even' } }) }
    await sync()
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)
    // One item twice and another one missing: it drifts.
    list.ids = [2, 4, 6, 2]
    expect(await sync(even)).toMatchObject({ coverage: 'drifted' })
    test.clock.advance(KEEP_RUNS_MS + DAY_MS)
    list.ids = [2, 4, 6, 8]

    for (let count = 0; count < 2; count++) await sync(even)

    const gone = test.rows('SELECT id, _reason AS reason FROM orders_history ORDER BY id')
    expect(gone).toEqual([1, 3, 5, 7].map((id) => ({ id, reason: 'out_of_scope' })))
    expect(idsOf(walks(test))).toEqual([3, 4])
  })

  it('goes with the next one where a walk of a short list found nothing in place of a refresh', async () => {
    await sync()
    await sync(shortList)
    list.ids.push(1000)
    await sync(shortList)
    await broken(1, shortList)

    await sync(shortList)

    const left = runs(test).map(({ status, rows_added: added }) => [status, added].join(' '))
    expect(left).toEqual(['succeeded 8', 'succeeded 1', 'failed 0', 'succeeded 0'])
    expect(walks(test).filter(({ status }) => status === 'complete')).toHaveLength(3)
  })

  it('stays where such a walk removed a row, or one was added before it was interrupted', async () => {
    await sync()
    list.ids.pop()
    for (let count = 0; count < 3; count++) await sync(shortList)
    list.ids.unshift(1000)
    await broken(2, shortList)

    for (let count = 0; count < 3; count++) await sync(shortList)

    const found = runs(test).map((run) => [run.walk_id, run.status, run.rows_added, run.rows_removed].join())
    expect(found).toEqual([
      '1,succeeded,8,0',
      '3,succeeded,0,1',
      '5,failed,1,0',
      '5,succeeded,0,0',
      '7,succeeded,0,0',
    ])
    expect(idsOf(walks(test))).toEqual([1, 3, 5, 7])
  })

  it('knows for an interrupted backfill what others read meanwhile, for as long as it stays open', async () => {
    const backfill: Partial<JobOptions> = { plan: BACKFILL, trigger: 'backfill' }
    const noted = () => test.value('SELECT count(*) FROM sync_refreshed')
    await broken(2, backfill)
    await sync()
    test.clock.advance(30 * DAY_MS)
    await sync()
    expect(noted()).toBe(8)
    list.ids.pop()

    expect(await sync(backfill)).toMatchObject({ error: null, untrusted: null })
    expect(test.value('SELECT count(*) FROM sync_missing')).toBe(0)
    expect(noted()).toBe(0)
  })
})
