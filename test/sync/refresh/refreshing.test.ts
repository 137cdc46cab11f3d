import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import type { JobOptions } from '../../../src/sync/job.ts'
import type { PageSource } from '../../../src/sync/types.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { hearing, mirroredIds, runOnce, runs, walks } from '../../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { policyOf, shareOf } from '../../helpers/shares.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const MINUTE = 60_000

const HOUR = 60 * MINUTE

/** A mirror of a list of ten pages that a full walk has read a minute ago. */
async function synced(script: Partial<Script> = {}) {
  const test = openTestMirror()
  const list = scriptedList({ ids: upTo(30), ...script })
  await runOnce(test, list)
  test.clock.advance(MINUTE)
  list.asked.length = 0
  return { test, list }
}

function withoutKey(id: number): string {
  return id === 31 ? '{"name":"no key"}' : `{"id":${id}}`
}

/** Asks `first` about the page before it is fetched. */
function withFirst(
  fetchPage: PageSource['fetchPage'],
  first: (page: number) => void,
): PageSource['fetchPage'] {
  return async (page, ...others) => {
    first(page)
    return fetchPage(page, ...others)
  }
}

function refresh(test: TestMirror, list: { source: Parameters<typeof runOnce>[1]['source'] }) {
  return runOnce(test, list, { instead: 'newest' })
}

function stateOf(test: TestMirror): Record<string, unknown> {
  const text = test.value('SELECT refresh FROM sync_jobs WHERE organization_id = ?', ACME.id)
  return JSON.parse(String(text)) as Record<string, unknown>
}

function status(test: TestMirror): Record<string, unknown> {
  return test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)[0] ?? {}
}

describe('a refresh', () => {
  it('brings new rows, is a run without a walk, and says as of when they are there', async () => {
    const { test, list } = await synced()
    const asOf = status(test).as_of
    list.ids.push(31, 32, 33)
    const at = new Date(test.clock.now()).toISOString()

    const result = await refresh(test, list)

    expect(result).toMatchObject({ error: null, walk: null, isInstead: true })
    expect(mirroredIds(test)).toEqual(upTo(33))
    expect(runs(test).at(-1)).toMatchObject({
      trigger: 'refresh',
      walk_id: null,
      rows_added: 3,
      first_page: null,
    })
    expect(walks(test)).toHaveLength(1)
    expect(status(test)).toMatchObject({ as_of: asOf, fresh_as_of: at, newest: 'last', coverage: 'steady' })
    expect(test.value('SELECT count(*) FROM sync_pages WHERE walk_id > 1')).toBe(0)
  })

  it('of a short list is a full walk', async () => {
    const { test, list } = await synced({ ids: upTo(12) })

    const result = await refresh(test, list)

    expect(result).toMatchObject({ error: null, isInstead: false, coverage: 'steady' })
    expect(walks(test)).toHaveLength(2)
  })

  it('of a list that was never read whole is a full walk', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(30) })

    await refresh(test, list)

    expect(status(test)).toMatchObject({ rows: 30, coverage: 'steady' })
    expect(runs(test)).toMatchObject([{ trigger: 'manual' }])
  })

  it('that is due and meets a list which another process has is told of as a refresh', async () => {
    const { test, list } = await synced({ ids: upTo(12) })
    await openTestMirror({ file: test.file, clock: test.clock }).store.acquire(jobOf())

    const due = await runOnce(test, list, {
      instead: 'due',
      refresh: policyOf(test.clock.now),
      trigger: 'schedule',
    })
    const asked = await runOnce(test, list, { instead: 'newest' })

    expect(due).toMatchObject({ run: null, walk: null, trigger: 'refresh', error: { code: 'BUSY' } })
    expect(asked).toMatchObject({ run: null, walk: null, trigger: 'manual', error: { code: 'BUSY' } })
  })

  it('that is stopped leaves no gap that the next one does not read', async () => {
    const { test, list } = await synced({ ids: upTo(300) })
    const before = stateOf(test)
    list.ids.push(...upTo(360).slice(300))
    const stop = new AbortController()
    const stopped = scriptedList({ ids: list.ids, before: (answer) => answer === 4 && stop.abort() })

    const result = await runOnce(test, stopped, { instead: 'newest', signal: stop.signal })

    expect(result).toMatchObject({ isInstead: true, error: { code: 'INTERRUPTED' } })
    expect(runs(test).at(-1)).toMatchObject({ trigger: 'refresh', status: 'interrupted' })
    expect(stateOf(test)).toMatchObject({ settledAt: before.settledAt, freshAsOf: before.freshAsOf })
    await refresh(test, list)
    expect(mirroredIds(test)).toEqual(upTo(360))
  })

  it('that fails is not tried again before its time', async () => {
    const { test, list } = await synced()
    const failing = scriptedList({
      ids: list.ids,
      before: () => {
        throw new Error('no answer')
      },
    })
    const due: Partial<JobOptions> = { instead: 'due', refresh: policyOf(test.clock.now) }
    test.clock.advance(HOUR)

    await runOnce(test, failing, due)
    await runOnce(test, list, due)
    expect(list.asked).toEqual([])

    test.clock.advance(HOUR)
    await runOnce(test, list, due)
    expect(list.asked).not.toEqual([])
    expect(runs(test).map(({ status: end }) => end)).toEqual(['succeeded', 'failed', 'succeeded'])
  })

  it.each([['ORGANIZATION_NOT_FOUND'], ['BAD_REQUEST']] as const)(
    'finds the end of a list that became shorter where a page past it is refused with %s',
    async (code) => {
      const { test, list } = await synced({ ids: upTo(42) })
      const refuse = (page: number) => {
        if (page > Math.ceil(list.ids.length / 3)) throw new JobError(code, 'no such page')
      }
      const strict = { ...list.source, fetchPage: withFirst(list.source.fetchPage, refuse) }
      list.ids.splice(0, 9)
      list.ids.push(43, 44, 45)
      const at = new Date(test.clock.now()).toISOString()

      const result = await refresh(test, { source: strict })

      expect(result).toMatchObject({ error: null, isInstead: true })
      expect(mirroredIds(test)).toEqual(upTo(45))
      expect(status(test)).toMatchObject({ fresh_as_of: at, newest: 'last' })
    },
  )

  it('that tries pages several times is charged each of them, older ones too', async () => {
    const { test, list } = await synced({ ids: upTo(300) })
    // For so long older pages are owed.
    test.clock.advance(2 * HOUR)
    const source: typeof list.source = {
      ...list.source,
      fetchPage: (page, observe, ...others) => {
        observe({ kind: 'request' })
        observe({ kind: 'request' })
        return list.source.fetchPage(page, observe, ...others)
      },
    }
    const policy = policyOf(test.clock.now, { share: shareOf(test.clock.now, { limit: 60 }) })
    const level = () => policy.share.level()
    const refreshDue = async () => {
      await runOnce(test, { source }, { instead: 'due', refresh: policy })
      return Number(runs(test).at(-1)?.requests)
    }

    // Both ends are read until 25 rows are known: nine pages each. Older ones have to wait until the share has carried that.
    expect(await refreshDue()).toBe(3 * 18)
    expect(level()).toBe(3 * 18)
    test.clock.advance(HOUR - MINUTE)
    const requests = await refreshDue()
    expect(requests).toBeGreaterThan(60)
    expect(requests).toBeLessThanOrEqual(60 + 3)
    expect(level()).toBe(requests)
  })

  it.each([21, null])(
    'reads on behind the rows that the first walk found in front at its end, killed at request %s',
    async (killedAt) => {
      const test = openTestMirror()
      const list = scriptedList({ ids: upTo(201).toReversed(), perPage: 25 })
      const { ids, asked, source } = list
      const stop = new AbortController()
      const fetchPage = withFirst(source.fetchPage, () => {
        test.clock.advance(1000)
        // Some of them stand behind the pages in front that the walk looks at again.
        if (asked.length === 9 && ids.length === 201) ids.unshift(...upTo(500).slice(201).toReversed())
        if (asked.length + 1 === killedAt) stop.abort()
      })
      const moving = { source: { ...source, fetchPage } }
      await runOnce(test, moving, { signal: stop.signal })
      if (killedAt !== null) await runOnce(test, moving)
      if (killedAt === null) expect(mirroredIds(test).length).toBeLessThan(500)
      test.clock.advance(MINUTE)

      await refresh(test, moving)

      expect(mirroredIds(test)).toEqual(upTo(500))
    },
  )

  it('tells once of values that do not fit their column, and of items without a usable key', async () => {
    const { test, list } = await synced({
      item: (id) => (id === 31 ? '{"name":"no key"}' : `{"id":${id},"size":${id > 30 ? '"large"' : 1}}`),
    })
    list.ids.push(31, 32)
    const told: unknown[] = []
    const observe = hearing({
      notices: ({ page, notices }) =>
        told.push(...notices.map(({ level, message }) => [page, level, message])),
    })

    await runOnce(test, list, { instead: 'newest', observe })
    await runOnce(test, list, { instead: 'newest', observe })

    expect(told).toEqual([
      [11, 'warn', expect.stringContaining('size__text')],
      [11, 'warn', expect.stringContaining('no usable key')],
    ])
  })

  it('still knows the newest end where an item without a usable key appears', async () => {
    const { test, list } = await synced({ item: withoutKey })
    list.ids.push(32, 33, 34)
    await refresh(test, list)
    list.ids.push(31)

    await refresh(test, list)

    expect(stateOf(test)).toMatchObject({ places: { first: 0, last: 3, elsewhere: 0 } })
  })
})

describe('between two pages of a walk', () => {
  it('a refresh goes first, and the accounts of the walk know nothing of it', async () => {
    const test = openTestMirror()
    const inFlight: number[] = []
    let open = 0
    const list = scriptedList({
      ids: upTo(60),
      before: (answer, { ids }) => {
        inFlight.push(open)
        test.clock.advance(10 * MINUTE)
        if (answer === 30) ids.push(61, 62)
      },
    })
    const { source } = list
    const watched = {
      ...source,
      fetchPage: async (...request: Parameters<typeof source.fetchPage>) => {
        open++
        try {
          return await source.fetchPage(...request)
        } finally {
          open--
        }
      },
    }
    await runOnce(test, { source })

    const { coverage, walk, error } = await runOnce(
      test,
      { source: watched },
      { refresh: policyOf(test.clock.now) },
    )

    expect({ error, coverage }).toEqual({ error: null, coverage: 'repaired' })
    expect(mirroredIds(test)).toEqual(upTo(62))
    // Answers are written in the order of their requests: never are two under way.
    expect(new Set(inFlight.slice(21))).toEqual(new Set([1]))
    const triggers = runs(test).map(({ trigger }) => trigger)
    expect(triggers.filter((trigger) => trigger === 'refresh').length).toBeGreaterThan(1)
    expect(walks(test).at(-1)).toMatchObject({ id: walk?.id, rows_seen: 62, status: 'complete' })
    const added = runs(test).reduce((sum, run) => sum + Number(run.rows_added), 0)
    expect(added).toBe(62)
  })

  it('a row that comes while a list of 100 pages is walked is there within 6 seconds, at every: 2s', async () => {
    const test = openTestMirror()
    const cameAt = new Map<number, number>()
    const list = scriptedList({
      ids: upTo(2500),
      perPage: 25,
      before: (answer, { ids }) => {
        // One answer a second.
        test.clock.advance(1000)
        if (answer <= 101 || answer % 7 !== 0) return
        ids.push(5000 + answer)
        cameAt.set(5000 + answer, test.clock.now())
      },
    })
    await runOnce(test, list)
    test.clock.advance(MINUTE)
    const policy = policyOf(test.clock.now, {
      every: 2000,
      share: shareOf(test.clock.now, { limit: 120, percent: 50 }),
    })

    await runOnce(test, list, { refresh: policy })

    const end = test.clock.now()
    const rows = test.rows('SELECT id, _first_seen_at AS at FROM orders WHERE id > 5000')
    const seenAt = new Map(rows.map(({ id, at }) => [id, Date.parse(String(at))]))
    const late = Array.from(cameAt, ([id, came]) => Math.min(seenAt.get(id) ?? end, end) - came)
    expect(late.length).toBeGreaterThan(20)
    expect(Math.max(...late)).toBeLessThanOrEqual(6000)
  })

  it('no older page is read of a list whose newest end is not due while it is walked', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(60), before: () => test.clock.advance(1000) })
    await runOnce(test, list)
    test.clock.advance(10 * MINUTE)
    const before = list.asked.length

    await runOnce(test, list, { refresh: policyOf(test.clock.now, { every: 60 * MINUTE }) })

    expect(list.asked.slice(before, before + 20)).toEqual(upTo(20))
  })

  it('a refresh waits until the share has room for it', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(60), before: () => test.clock.advance(1000) })
    await runOnce(test, list)
    test.clock.advance(HOUR)
    const begun = test.clock.now()
    const policy = policyOf(test.clock.now)
    // Beyond what newest ends may begin with by 10 requests, of which the share carries one a second.
    await policy.share.take(() => ({ cost: 1.5 * 60 + 10 }))

    await runOnce(test, list, { refresh: policy })

    const refreshes = test.rows("SELECT started_at FROM sync_runs WHERE trigger = 'refresh' ORDER BY id")
    expect(Date.parse(String(refreshes[0]?.started_at)) - begun).toBe(10_000)
  })

  it('no refresh goes first where none is configured', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(60), before: () => test.clock.advance(MINUTE) })
    await runOnce(test, list)
    await runOnce(test, list)

    expect(runs(test).map(({ trigger }) => trigger)).toEqual(['manual', 'manual'])
  })

  it('older pages are read with what is left of the share, in turn with those of walks', async () => {
    const test = openTestMirror()
    const urgencies: unknown[] = []
    const list = scriptedList({ ids: upTo(300), before: () => test.clock.advance(MINUTE) })
    const { source } = list
    const watched = {
      ...source,
      fetchPage: (...request: Parameters<typeof source.fetchPage>) => {
        urgencies.push(request[3] ?? 'ahead')
        return source.fetchPage(...request)
      },
    }
    await runOnce(test, { source: watched })
    urgencies.length = 0

    test.clock.advance(HOUR)
    const cheap = policyOf(test.clock.now, { share: shareOf(test.clock.now, { limit: 60 }) })
    await runOnce(test, { source: watched }, { refresh: cheap })

    expect(urgencies.filter((urgency) => urgency === 'walk').length).toBeGreaterThan(5)
    expect(runs(test).reduce((sum, run) => sum + Number(run.requests), 0)).toBeGreaterThanOrEqual(200)
  })
})
