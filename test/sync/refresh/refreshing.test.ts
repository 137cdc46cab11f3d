import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import type { JobOptions } from '../../../src/sync/job.ts'
import { newFreshness } from '../../../src/sync/refresh/worth.ts'
import type { PageSource } from '../../../src/sync/types.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { hearing, mirroredIds, policyOf, runOnce, runs, walks } from '../../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const NEWEST = { instead: 'newest' } as const

/**
 * A mirror of a list of ten pages, if nothing else is said, that a full walk has read a minute ago. `during`: before each answer from then on,
 * which are counted from 1.
 */
async function synced(
  script: Partial<Script> = {},
  during: (test: TestMirror, answer: number, ids: number[]) => unknown = () => {},
) {
  const test = openTestMirror()
  let isWalked = false
  const before: Script['before'] = (answer, { ids }) => isWalked && during(test, answer, ids)
  const list = scriptedList({ ids: upTo(30), before, ...script })
  await runOnce(test, list)
  isWalked = true
  test.clock.advance(MINUTE)
  list.asked.length = 0
  return { test, list }
}

/** The same source, of which something happens before each answer. May throw. */
function withFirst(source: PageSource, first: (...request: Parameters<PageSource['fetchPage']>) => unknown) {
  const fetchPage: PageSource['fetchPage'] = async (...request) => {
    first(...request)
    return source.fetchPage(...request)
  }
  return { source: { ...source, fetchPage } }
}

function status(test: TestMirror): Record<string, unknown> {
  return test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)[0] ?? {}
}

const isoNow = ({ clock }: TestMirror) => new Date(clock.now()).toISOString()

describe('a refresh', () => {
  it('brings new rows, is a run without a walk, and says as of when they are there', async () => {
    const { test, list } = await synced()
    const asOf = status(test).as_of
    list.ids.push(31, 32, 33)
    const at = isoNow(test)

    const result = await runOnce(test, list, NEWEST)

    expect(result).toMatchObject({ error: null, walk: null, isInstead: true })
    expect(mirroredIds(test)).toEqual(upTo(33))
    const run = { trigger: 'refresh', walk_id: null, rows_added: 3, first_page: null }
    expect(runs(test).at(-1)).toMatchObject(run)
    expect(walks(test)).toHaveLength(1)
    expect(status(test)).toMatchObject({ as_of: asOf, fresh_as_of: at, newest: 'last', coverage: 'steady' })
    expect(test.value('SELECT count(*) FROM sync_pages WHERE walk_id > 1')).toBe(0)
  })

  it('of a list that is short, or was never read whole, is a full walk', async () => {
    const { test, list } = await synced({ ids: upTo(12) })
    const other = openTestMirror()

    const result = await runOnce(test, list, NEWEST)
    await runOnce(other, scriptedList({ ids: upTo(30) }), NEWEST)

    expect(result).toMatchObject({ error: null, isInstead: false, coverage: 'steady' })
    expect(walks(test)).toHaveLength(2)
    expect(status(other)).toMatchObject({ rows: 30, coverage: 'steady' })
    expect(runs(other)).toMatchObject([{ trigger: 'manual' }])
  })

  it('that is due and meets a list which another process has is told of as a refresh', async () => {
    const { test, list } = await synced({ ids: upTo(12) })
    await openTestMirror({ file: test.file, clock: test.clock }).store.acquire(jobOf())
    const refresh = policyOf(test)

    const due = await runOnce(test, list, { instead: 'due', refresh, trigger: 'schedule' })

    expect(due).toMatchObject({ run: null, walk: null, trigger: 'refresh', error: { code: 'BUSY' } })
  })

  it.each<[what: string, rows: number, mostCharged: number, isFailing: boolean, ahead: number]>([
    ['that fails', 30, 1, true, 0],
    ['that fails after a clock that ran ahead was set back', 30, 1, true, DAY],
    ['by a walk that fails', 12, 5, true, 0],
    ['by a walk of a list that has become long', 12, 5, false, 0],
  ])('%s is not tried again before its time, and uses up no share', async (...how) => {
    const [_what, count, most, isFailing, ahead] = how
    const { test, list } = await synced({ ids: upTo(count) })
    const refresh = policyOf(test)
    const due: Partial<JobOptions> = { instead: 'due', refresh, trigger: 'schedule' }
    const failing = withFirst(list.source, (_page, observe) => {
      observe({ kind: 'request' })
      throw new JobError('FORBIDDEN', 'no')
    })
    const source = isFailing ? failing : list
    if (!isFailing) list.ids.push(...upTo(300).slice(count))
    test.clock.advance(ahead)
    if (ahead > 0) await runOnce(test, list, NEWEST)
    test.clock.advance(HOUR - ahead)

    const result = await runOnce(test, source, due)
    const level = refresh.share.level()
    await runOnce(test, source, due)

    const error = isFailing ? { code: 'FORBIDDEN' } : null
    expect(result).toMatchObject({ isInstead: count === 30, error })
    expect(level).toBeLessThanOrEqual(most)
    expect(runs(test).filter(({ status: end }) => end === 'failed')).toHaveLength(isFailing ? 1 : 0)
    test.clock.advance(HOUR)
    expect((await runOnce(test, list, due)).error).toBeNull()
  })

  it('has each page charged before it is asked for, so that a kill leaves it charged, and each further try after', async () => {
    const { test, list } = await synced({ ids: upTo(300) })
    // For so long older pages are owed, which wait until the share has carried what the ends took.
    test.clock.advance(2 * HOUR)
    list.ids.push(...upTo(400).slice(300))
    // Another list has waited longer: whoever begins a refresh has compared them.
    const other = { ...newFreshness(1000, 40, 0), every: HOUR }
    const refresh = { ...policyOf(test), others: () => [other] }
    let sent = 0
    const uncharged: unknown[] = []
    const twice = withFirst(list.source, (page, observe) => {
      if (refresh.share.level() < ++sent) uncharged.push(page)
      observe({ kind: 'request' })
      sent++
    })
    const due: Partial<JobOptions> = { instead: 'due', refresh }

    await runOnce(test, twice, due)
    expect(refresh.share.level()).toBe(sent)
    test.clock.advance(HOUR - MINUTE)
    sent = 0
    const result = await runOnce(test, twice, due)

    expect(result).toMatchObject({ error: null, run: { requests: sent } })
    expect(sent).toBeGreaterThan(60)
    expect(sent).toBeLessThanOrEqual(60 + 3)
    expect(uncharged).toEqual([])
  })

  it('is no failure where an older page, or the last one, is refused since the list has become shorter', async () => {
    const { test, list } = await synced({ ids: upTo(300) })
    await runOnce(test, list, NEWEST)
    list.ids.splice(30)
    test.clock.advance(HOUR / 2)
    list.asked.length = 0
    const strict = withFirst(list.source, (page) => {
      if (page > 11) throw new JobError('ORGANIZATION_NOT_FOUND', `no page ${page}`)
    })

    const result = await runOnce(test, strict, { instead: 'due', refresh: policyOf(test) })

    expect(result).toMatchObject({ error: null, isInstead: true })
    expect(list.asked).toEqual([])
    list.ids.push(301)
    const last = await runOnce(test, strict, { ...NEWEST, job: jobOf({ newest: 'last' }) })
    expect([last.error, list.asked.slice(0, 2)]).toEqual([null, [1, 11]])
    expect(mirroredIds(test)).toContain(301)
    expect(status(test)).toMatchObject({ failing_since: null })
  })

  it('reads on behind the rows that the first walk found in front at its end', async () => {
    const test = openTestMirror()
    const list = scriptedList({
      ids: upTo(201).toReversed(),
      perPage: 25,
      before(answer, { ids }) {
        test.clock.advance(1000)
        // Some of them stand behind the pages in front that the walk looks at again.
        if (answer === 10) ids.unshift(...upTo(500).slice(201).toReversed())
      },
    })
    await runOnce(test, list)
    expect(mirroredIds(test).length).toBeLessThan(500)
    test.clock.advance(MINUTE)

    await runOnce(test, list, NEWEST)

    expect(mirroredIds(test)).toEqual(upTo(500))
  })

  it('tells once of values that do not fit their column, and of items without a usable key, and still knows the newest end', async () => {
    const { test, list } = await synced({
      item: (id) => (id === 31 ? '{"name":"no key"}' : `{"id":${id},"size":${id === 32 ? '"large"' : 1}}`),
    })
    const told: unknown[] = []
    const observe = hearing({
      notices: ({ page, notices }) => told.push(...notices.map(({ message }) => [page, message])),
    })
    list.ids.push(32, 33, 34)
    await runOnce(test, list, { ...NEWEST, observe })
    list.ids.push(31)

    await runOnce(test, list, { ...NEWEST, observe })
    await runOnce(test, list, { ...NEWEST, observe })

    expect(told).toEqual([
      [11, expect.stringContaining('size__text')],
      [12, expect.stringContaining('no usable key')],
    ])
    const saved = test.value('SELECT refresh FROM sync_jobs WHERE organization_id = ?', ACME.id)
    const places = { first: 0, last: 3, elsewhere: 0 }
    expect(JSON.parse(String(saved))).toMatchObject({ newest: 'last', places })
  })
})

describe('between two pages of a walk', () => {
  it('a refresh goes first, and the accounts of the walk know nothing of it', async () => {
    const { test, list } = await synced({ ids: upTo(60) }, ({ clock }, answer, ids) => {
      clock.advance(10 * MINUTE)
      if (answer === 10) ids.push(61, 62)
    })
    let refreshes = 0
    const observe = hearing({ refresh: () => refreshes++ })

    const result = await runOnce(test, list, { refresh: policyOf(test), observe })

    expect(result).toMatchObject({ error: null, coverage: 'repaired' })
    expect(mirroredIds(test)).toEqual(upTo(62))
    expect(refreshes).toBeGreaterThan(1)
    expect(runs(test).filter(({ trigger }) => trigger === 'refresh')).toMatchObject([{ rows_added: 2 }])
    expect(walks(test).at(-1)).toMatchObject({ id: result.walk?.id, rows_seen: 62, status: 'complete' })
    expect(runs(test).reduce((sum, run) => sum + Number(run.rows_added), 0)).toBe(62)
  })

  it('no older page is read of a list whose newest end is not due while it is walked, and nothing where no refresh is configured', async () => {
    const { test, list } = await synced({ ids: upTo(60) }, ({ clock }) => clock.advance(1000))
    test.clock.advance(10 * MINUTE)

    await runOnce(test, list, { refresh: policyOf(test) })
    await runOnce(test, list)

    expect(list.asked.slice(0, 20)).toEqual(upTo(20))
    expect(runs(test).map(({ trigger }) => trigger)).toEqual(['manual', 'manual', 'manual'])
  })

  it('a refresh waits until the share has room for it', async () => {
    const { test, list } = await synced({ ids: upTo(60) }, ({ clock }) => clock.advance(1000))
    test.clock.advance(HOUR)
    const begun = test.clock.now()
    const refresh = policyOf(test)
    // Beyond what newest ends may begin with by 10 requests, of which the share carries one a second.
    await refresh.share.take(() => true, 1.5 * 60 + 10)
    list.ids.push(61)

    await runOnce(test, list, { refresh })

    const refreshed = runs(test).find(({ trigger }) => trigger === 'refresh')
    expect(Date.parse(String(refreshed?.started_at)) - begun).toBe(10_000)
  })
})

describe('once a clock that ran ahead was set back', () => {
  it('a walk claims nothing that is to come', async () => {
    const { test, list } = await synced()
    test.clock.advance(DAY)
    await runOnce(test, list, NEWEST)
    test.clock.advance(-DAY)
    const at = isoNow(test)

    await runOnce(test, list, { refresh: policyOf(test, DAY / 2) })

    expect(status(test).fresh_as_of).toBe(at)
  })

  it('a refresh that this interrupts claims nothing', async () => {
    const { test, list } = await synced({}, ({ clock }, answer) => answer === 2 && clock.advance(-MINUTE))
    test.clock.advance(DAY)

    await runOnce(test, list, NEWEST)

    const { as_of, fresh_as_of } = status(test)
    expect(fresh_as_of).toBe(as_of)
  })
})
