import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import type { RefreshPolicy } from '../../../src/sync/refresh/due.ts'
import type { RefreshState } from '../../../src/sync/refresh/state.ts'
import type { PageSource } from '../../../src/sync/types.ts'
import { START } from '../../helpers/clock.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { pageOf } from '../../helpers/pages.ts'
import { hearing, runOnce, runs } from '../../helpers/run-once.ts'
import { upTo } from '../../helpers/scripted-list.ts'
import { shareOf } from '../../helpers/shares.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const PER_PAGE = 25
/** The item that has few fields. */
const SHORT = 249
const CHANGED_SINCE = { parameter: 'updated_after', field: 'updated_at' }

/** What the API answers for what changed: by the newest change, all of the list, rows of other lists too, only parts of items, or nothing but an error. */
type Answers = 'changed' | 'all' | 'foreign' | 'parts' | 'refused'

/** Twenty pages of items, the newest first, that change when a test says so; and a mirror that a walk has read. */
async function synced(answers: Answers = 'changed', collection = {}) {
  const test = openTestMirror()
  const job = jobOf({ changedSince: CHANGED_SINCE, ...collection })
  const api = { answers }
  const items = new Map(upTo(500).map((id) => [id, { id, state: 'open', at: START - (500 - id) * MINUTE }]))
  const asked: { page: number; since: string | undefined }[] = []
  const warned: string[] = []

  function shown(since: string | undefined) {
    const all = [...items.values()].toSorted((a, b) => b.id - a.id)
    if (since === undefined || api.answers === 'all') return all
    return all.filter(({ at }) => at > Date.parse(since)).toSorted((a, b) => b.at - a.at)
  }

  const source: PageSource = {
    refusal: async () => null,
    limit: () => null,
    close: async () => {},
    async fetchPage(number, observe, _signal, _urgency, more) {
      observe({ kind: 'request' })
      const since = more?.updated_after as string | undefined
      asked.push({ page: number, since })
      if (since !== undefined && api.answers === 'refused')
        throw new JobError('UNEXPECTED_STATUS', 'no such filter (422)')
      const list = shown(since)
      if (since !== undefined && api.answers === 'foreign' && list.length > 0)
        list.push({ id: 9000, state: 'of nobody', at: list[0]?.at ?? 0 })
      const isPart = since !== undefined && api.answers === 'parts'
      const texts = list
        .slice((number - 1) * PER_PAGE, number * PER_PAGE)
        .map(({ id, state, at }) =>
          JSON.stringify(
            id === SHORT
              ? { id, state }
              : isPart
                ? { id }
                : { id, state, updated_at: new Date(at).toISOString(), channel: 'web' },
          ),
        )
      const lastPage = Math.max(1, Math.ceil(list.length / PER_PAGE))
      return pageOf(texts, {
        number,
        next: number < lastPage ? number + 1 : null,
        total: list.length,
        lastPage,
      })
    },
  }

  function change(...ids: readonly number[]): void {
    for (const id of ids) items.set(id, { id, state: `since ${test.clock.now()}`, at: test.clock.now() })
  }

  const policy: RefreshPolicy = {
    every: 5 * MINUTE,
    turn: Number.POSITIVE_INFINITY,
    walkEvery: DAY,
    newest: 'auto',
    alarm: true,
    share: shareOf(test.clock.now, { limit: 60, percent: 10 }),
  }
  const observe = hearing({ changed_since: ({ message }) => warned.push(message) })

  async function refresh(instead: 'newest' | 'due' = 'newest') {
    asked.length = 0
    return runOnce(test, { source }, { job, instead, observe, refresh: instead === 'due' ? policy : null })
  }

  /** Items whose row is another one, and rows of items that are not listed. */
  function wrong(): unknown[] {
    const rows = test.rows('SELECT id, state FROM orders ORDER BY id')
    const known = new Set(rows.map(({ id }) => Number(id)))
    const extra = rows.filter(({ id, state }) => items.get(Number(id))?.state !== state).map(({ id }) => id)
    return [...extra, ...[...items.keys()].filter((id) => !known.has(id))]
  }

  const changes = () => {
    const text = test.value('SELECT refresh FROM sync_jobs WHERE organization_id = ?', ACME.id)
    return (JSON.parse(String(text)) as RefreshState).changes
  }

  await runOnce(test, { source }, { job, observe })
  test.clock.advance(MINUTE)
  return { test, job, api, items, source, asked, warned, change, refresh, wrong, changes, observe, policy }
}

/** Those of the questions that were about changes. */
function ofChanges(asked: readonly { page: number; since: string | undefined }[]) {
  return asked.filter(({ since }) => since !== undefined).map(({ page }) => page)
}

describe('a refresh of a list whose API can be asked for changes', () => {
  it('brings what changed anywhere in it, for a request more', async () => {
    const list = await synced()
    list.change(7, 250)

    await list.refresh()
    const first = ofChanges(list.asked)
    list.test.clock.advance(5 * MINUTE)
    list.change(3)
    await list.refresh()

    expect(list.wrong()).toEqual([])
    expect([first, ofChanges(list.asked)]).toEqual([[1], [1]])
    expect(runs(list.test).at(-1)).toMatchObject({ trigger: 'refresh', rows_changed: 1 })
  })

  it('adds no row that the list itself has not shown', async () => {
    const list = await synced('foreign')
    list.change(7, 250)

    await list.refresh()

    expect(ofChanges(list.asked)).toEqual([1])
    expect(list.wrong()).toEqual([])
  })

  it('writes no part of an item, and asks no more where that is all that comes', async () => {
    const list = await synced('parts')
    for (let times = 0; times < 3; times++) {
      list.change(250, SHORT)
      await list.refresh()
      list.test.clock.advance(5 * MINUTE)
    }

    expect(list.wrong()).toEqual([SHORT, 250])
    expect(list.changes()?.off).toBe(
      'the API refuses requests with updated_after (BAD_RESPONSE); it is tried again each day',
    )
  })

  it('reads on where more has changed than a page holds', async () => {
    const list = await synced()
    await list.refresh()
    list.test.clock.advance(5 * MINUTE)
    list.change(...upTo(60))

    await list.refresh()

    expect(ofChanges(list.asked)).toEqual([1, 2, 3])
    expect(list.wrong()).toEqual([])
  })

  it('leaves more pages to the share, which reads them before older ones', async () => {
    const list = await synced()
    await list.refresh()
    list.test.clock.advance(60 * MINUTE)
    list.change(...upTo(140))

    const due = await list.refresh('due')
    expect({ pages: ofChanges(list.asked), error: due.error }).toEqual({ pages: [1], error: null })
    expect(list.changes()?.ask).toMatchObject({ page: 2 })
    list.test.clock.advance(3 * MINUTE)
    await list.refresh('due')

    expect(ofChanges(list.asked)).toEqual([2, 3, 4, 5, 6])
    expect(list.wrong()).toEqual([])
  })

  it('claims no more by it, and removes nothing', async () => {
    const list = await synced()
    await list.refresh()
    const before = list.test.rows(
      'SELECT as_of, coverage FROM sync_status WHERE organization_id = ?',
      ACME.id,
    )
    list.items.delete(7)
    list.test.clock.advance(5 * MINUTE)

    await list.refresh()

    expect(list.wrong()).toEqual([7])
    expect(
      list.test.rows('SELECT as_of, coverage FROM sync_status WHERE organization_id = ?', ACME.id),
    ).toEqual(before)
  })

  it('says so where a row of the newest end changed without its field', async () => {
    const list = await synced()
    await list.refresh()
    list.items.set(499, { id: 499, state: 'late', at: START - MINUTE })
    await list.refresh()

    expect(list.wrong()).toEqual([])
    expect(list.warned).toEqual([expect.stringContaining('a row changed but its updated_at did not')])
  })

  it('asks for what was left over after it was stopped', async () => {
    const list = await synced()
    await list.refresh()
    list.test.clock.advance(60 * MINUTE)
    list.change(...upTo(60))
    await list.refresh('due')
    list.test.clock.advance(9 * MINUTE)

    await list.refresh()

    expect(ofChanges(list.asked)).toEqual([2, 3])
    expect(list.wrong()).toEqual([])
  })
})

describe('a refresh of a list whose API ignores the parameter', () => {
  it('asks once a day, says so once, and goes on as without it', async () => {
    const list = await synced('all')

    for (let day = 0; day < 3; day++) {
      await list.refresh()
      expect(ofChanges(list.asked)).toEqual([1])
      list.test.clock.advance(DAY - MINUTE)
      await list.refresh()
      expect(ofChanges(list.asked)).toEqual([])
      list.test.clock.advance(MINUTE)
    }

    expect(list.warned).toEqual([expect.stringContaining('changedSince is off: the API gave rows')])
    expect(list.wrong()).toEqual([])
  })

  it('asks at each refresh again, and says so, where it heeds it a day later', async () => {
    const list = await synced('all')
    await list.refresh()
    list.api.answers = 'changed'
    list.test.clock.advance(DAY)
    list.change(7)

    for (let times = 0; times < 2; times++) {
      await list.refresh()
      expect(ofChanges(list.asked)).toEqual([1])
      list.test.clock.advance(5 * MINUTE)
    }

    expect(list.wrong()).toEqual([])
    expect(list.changes()).toMatchObject({ off: null })
    expect(list.warned).toEqual([expect.stringContaining('is off'), expect.stringContaining('is on again')])
  })

  it('asks again once another one is configured', async () => {
    const list = await synced('all')
    await list.refresh()
    const job = jobOf({ changedSince: { ...CHANGED_SINCE, field: 'id' } })

    await runOnce(list.test, list, { job, instead: 'newest', observe: list.observe })

    expect(list.changes()).toMatchObject({ rules: { field: 'id' }, mark: null, off: null })
    await runOnce(list.test, list, { job: jobOf(), instead: 'newest' })
    expect(list.changes()).toBeUndefined()
  })
})

describe('a refresh of a list whose API refuses the parameter', () => {
  it('succeeds, and asks no more after the second time', async () => {
    const list = await synced('refused')

    const results = [await list.refresh(), await list.refresh()]
    const last = ofChanges(list.asked)
    await list.refresh()

    expect(results.map(({ error }) => error)).toEqual([null, null])
    expect([last, ofChanges(list.asked)]).toEqual([[1], []])
    expect(list.warned).toEqual([expect.stringContaining('refuses requests with updated_after')])
  })
})

describe('a full walk', () => {
  it('finds what the API hid, or changed without its field', async () => {
    const list = await synced()
    await list.refresh()
    list.test.clock.advance(30 * MINUTE)
    list.change(400)
    await list.refresh()
    const item = { id: 209, state: 'late', at: list.test.clock.now() - 20 * MINUTE }
    list.items.set(209, item)
    list.items.set(208, { ...item, id: 208, at: START - 292 * MINUTE })
    await list.refresh()
    expect(list.wrong()).toEqual([208, 209])

    const { job, observe, policy } = list
    await runOnce(list.test, list, { job, observe, refresh: policy })

    expect(list.wrong()).toEqual([])
    expect(list.changes()).toMatchObject({ lateAt: expect.any(Number), hasUntouched: true })
    expect(list.warned).toEqual([expect.stringContaining('a row changed but its updated_at did not')])
  })
})
