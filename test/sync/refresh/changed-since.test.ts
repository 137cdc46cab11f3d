import { describe, expect, it } from 'vitest'
import {
  JobError,
  MirrorError,
  RateLimitedError,
  RetryableError,
  TokenRefusedError,
} from '../../../src/errors.ts'
import {
  afterChanges,
  afterRefusal,
  beginChanges,
  type ChangedSince,
  type ChangesAnswer,
  changedRows,
  changesWarnings,
  isRefusal,
  keepChanges,
  verifyChanges,
} from '../../../src/sync/refresh/changed-since.ts'
import { readMoment } from '../../../src/sync/refresh/moment.ts'

const RULES = { parameter: 'updated_after', field: 'updated_at' }
const MINUTE = 60_000
const DAY = 1440 * MINUTE
const NOW = Date.UTC(2026, 10, 20, 9)

/** A minute after eight, as the API writes it. */
const at = (minute: number, second = 0) =>
  new Date(Date.UTC(2026, 10, 20, 8, minute, second)).toISOString().replace('.000', '')
const moments = (...times: readonly string[]) => times.map((time) => readMoment(time))

function begin(before?: ChangedSince, shown = moments(at(28, 1), at(30)), now = NOW) {
  return beginChanges(before, RULES, shown, 5 * MINUTE, now)
}

function answer(state: ChangedSince, given: Partial<ChangesAnswer> = {}, listTotal: number | null = 1000) {
  return afterChanges(state, { values: [], total: 0, next: null, ...given }, listTotal, NOW)
}

/** An API that has shown that it leaves out what did not change, asked for its first page. */
const asking = answer(begin())

describe('what is asked first', () => {
  it('is what will have changed a day after the largest value, less the time since the list was read', () => {
    const state = begin()

    expect(state).toMatchObject({
      mark: at(25),
      ask: { since: at(25).replace('20T', '21T'), page: 1, isProbe: true },
    })
  })

  it('is then what changed since two minutes before it', () => {
    expect(asking).toMatchObject({ probedAt: NOW, ask: { since: at(23), page: 1, isProbe: false } })
  })

  it.each([
    { after: 0, isProbe: false },
    { after: DAY - 1, isProbe: false },
    { after: DAY, isProbe: true },
    // The clock was set back.
    { after: -DAY, isProbe: true },
  ])('is asked again after a day: $after', ({ after, isProbe }) => {
    const read = answer(asking)

    expect(begin(read, [], NOW + after).ask?.isProbe).toBe(isProbe)
  })

  it.each([
    { shown: moments('2026-11-20', '2026-11-20'), since: '2026-11-18' },
    { shown: moments(at(0), at(60), at(120)), since: '2026-11-20T08:55:00Z' },
    { shown: moments(at(0), at(-60), at(1)), since: at(-6) },
    // Rows that changed at once.
    { shown: moments(at(0), at(0), at(60)), since: at(53) },
  ])('is a whole unit before it where values are rounded to more: $since', ({ shown, since }) => {
    expect(answer(begin(undefined, shown)).ask).toMatchObject({ since })
  })

  it.each([
    { name: 'no row', shown: [] },
    // Rows may get one with their first change.
    { name: 'no time', shown: [null, null] },
    { name: 'a time to come', shown: moments('9999-12-31') },
  ])('is nothing where the newest end shows $name', ({ shown }) => {
    expect(begin(undefined, shown)).toMatchObject({ mark: null, ask: null, off: null })
  })

  it('does not go by a row that is dated far ahead', () => {
    expect(begin(undefined, moments(at(30), '2031-01-01T00:00:00Z')).mark).toBe(at(25))
    expect(begin(undefined, moments(at(30), at(30 + 120))).mark).toBe(at(25))
    // An API whose clock is ahead.
    expect(begin(undefined, moments(at(30 + 120))).mark).toBe(at(25 + 120))
  })

  it('is the page that was left over', () => {
    const left = { ...asking, ask: { since: at(1), page: 7, total: 900, above: null, isProbe: false } }

    expect(begin(left)).toBe(left)
  })
})

describe('an API that ignores the parameter', () => {
  it.each([
    { name: 'gives rows for a moment to come', state: begin(), values: moments(at(30)) },
    { name: 'gives rows without a time for it', state: begin(), values: [null] },
    { name: 'gives a row of the past', state: asking, values: moments(at(29), at(21, 59)) },
  ])('$name, and is not asked again', ({ state, values }) => {
    const after = answer(state, { values, total: 1000, next: 2 })

    expect(after).toMatchObject({ ask: null, off: expect.stringContaining('ignores the parameter') })
    expect(begin(after, undefined, NOW + 9 * DAY)).toBe(after)
    expect(changesWarnings(state, after)).toEqual([expect.stringContaining('changedSince is off')])
    expect(changesWarnings(after, after)).toEqual([])
  })

  it.each([
    { name: 'rounds down', state: asking, values: moments(at(22)) },
    { name: 'has a row of the far future', state: begin(), values: moments('2031-01-01T00:00:00Z') },
    { name: 'gives a row without a time', state: asking, values: [null, ...moments(at(29))] },
  ])('is not one that $name', ({ state, values }) => {
    expect(answer(state, { values, total: 1 }).off).toBeNull()
  })

  it('or changed nearly all at once shows which when it is asked next', () => {
    const values = moments(at(29), at(28))

    expect(answer(asking, { values, total: 501, next: 2 })).toMatchObject({
      mark: null,
      probedAt: null,
      ask: null,
    })
    expect(answer(asking, { values, total: 500, next: 2 })).toMatchObject({ mark: at(29), probedAt: NOW })
    expect(answer(asking, { values, total: 501, next: 2 }, null).ask).toMatchObject({ page: 2 })
  })
})

/** The state after a first page of several. */
const first = (values: ReturnType<typeof readMoment>[]) => answer(asking, { values, total: 60, next: 2 })

describe('more pages of changes', () => {
  it('are read on where the newest change comes first: its mark is of the first answer', () => {
    const one = first(moments(at(40), at(39)))
    const two = answer(one, { values: moments(at(41), at(30)), total: 60, next: 3 })

    expect(one).toMatchObject({ mark: at(40), ask: { since: at(23), page: 2 } })
    expect(two).toMatchObject({ mark: at(40), ask: { since: at(23), page: 3 } })
    expect(answer(two, { values: moments(at(24)), total: 60 })).toMatchObject({
      mark: at(40),
      ask: null,
      read: { since: at(23), total: 60 },
    })
  })

  it('are the first one again from the new mark on where the oldest change comes first', () => {
    const one = first(moments(at(24), at(40)))
    const two = answer(one, { values: moments(at(40), at(50)), total: 60, next: 3 })

    // One page may rise by chance.
    expect(one).toMatchObject({ mark: at(40), ask: { since: at(23), page: 2 } })
    expect(two).toMatchObject({ mark: at(50), ask: { page: 3 } })
    const known = { ...two, ask: asking.ask, mark: asking.mark }
    expect(answer(known, { values: moments(at(24), at(40)), total: 60, next: 2 })).toMatchObject({
      mark: at(40),
      ask: { since: at(38), page: 1 },
    })
  })

  it('are asked again after a fall also where the last of them came', () => {
    const last = { ...asking, ask: { since: at(23), page: 4, total: 100, above: null, isProbe: false } }

    expect(answer(last, { values: moments(at(30)), total: 99 }).ask).toMatchObject({ page: 3, total: 99 })
  })

  it('are given up where they are more than half of the list', () => {
    const far = { ...asking, ask: { since: at(23), page: 21, total: null, above: null, isProbe: false } }

    expect(answer(far, { values: moments(at(30)), total: null, next: 22 })).toMatchObject({
      ask: null,
      mark: null,
    })
  })

  it('are read on where that did not move it, and move it then', () => {
    const ties = first(moments(at(25), at(25)))
    const more = answer(ties, { values: moments(at(25), at(26)), total: 60, next: 3 })

    expect(ties).toMatchObject({ mark: at(25), ask: { page: 2 } })
    expect(more).toMatchObject({ mark: at(26), ask: { since: at(23), page: 3 } })
    expect(answer(more, { values: moments(at(24)), total: 60 }).mark).toBe(at(26))
  })

  it.each([
    { total: 60, page: 4 },
    { total: 61, page: 4 },
    { total: 59, page: 2 },
    { total: 35, page: 2 },
    { total: 34, page: 1 },
    { total: null, page: 4 },
  ])('are asked again where rows slid out of them: $total', ({ total, page }) => {
    const third = {
      ...first(moments(at(40), at(39))),
      ask: { since: at(23), page: 3, total: 60, above: null, isProbe: false },
    }

    expect(answer(third, { values: moments(at(30)), total, next: 4 }).ask).toMatchObject({ page, total })
  })

  it('are not asked again until something is added to them', () => {
    const read = { ...asking, read: { since: at(23), total: 60 } }

    expect(answer(read, { values: moments(at(25), at(24)), total: 60, next: 2 }).ask).toBeNull()
    expect(answer(read, { values: moments(at(25), at(24)), total: 61, next: 2 }).ask).toMatchObject({
      page: 2,
    })
  })
})

describe('an API that refuses', () => {
  it('is not asked again after the second time in a row', () => {
    const once = afterRefusal(asking, 'UNEXPECTED_STATUS')

    expect(once).toMatchObject({ off: null, ask: null })
    expect(answer({ ...once, ask: asking.ask })).toMatchObject({ refused: 0 })
    expect(afterRefusal(once, 'UNEXPECTED_STATUS').off).toBe(
      'the API refuses requests with updated_after (UNEXPECTED_STATUS)',
    )
  })

  it('is another matter than one that cannot be reached', () => {
    expect(isRefusal(new JobError('BAD_REQUEST', ''))).toBe(true)
    expect(isRefusal(new RetryableError('SERVER_ERROR', ''))).toBe(true)
    expect(isRefusal(new RetryableError('NETWORK', ''))).toBe(true)
    expect(isRefusal(new RateLimitedError(''))).toBe(true)
    expect(isRefusal(new TokenRefusedError(''))).toBe(true)
    expect(isRefusal(new MirrorError(''))).toBe(false)
  })

  it('by a page behind the first is asked for it again from before, and is off where that goes on', () => {
    const two = first(moments(at(40), at(39)))
    const once = afterRefusal(two, 'SERVER_ERROR')

    expect(once).toMatchObject({ mark: at(23), ask: null, off: null, refused: 1 })
    const again = answer(
      { ...once, ask: asking.ask },
      { values: moments(at(40), at(39)), total: 60, next: 2 },
    )
    expect(afterRefusal(again, 'SERVER_ERROR').off).toMatch(/refuses requests/)
    expect(isRefusal(new Error('a defect'))).toBe(false)
  })
})

describe('what pages of the list itself changed', () => {
  const read = answer({ ...asking, from: Date.parse(at(10)) }, { values: moments(at(40)), total: 1 })

  it.each([
    { name: 'was late', time: at(37, 59), late: 1 },
    { name: 'will be asked for again', time: at(38), late: 0 },
    { name: 'changed before it was asked for', time: at(10), late: 0 },
  ])('$name: $time', ({ time, late }) => {
    expect(verifyChanges(read, [{ at: readMoment(time), isTouched: true }])).toMatchObject({
      late,
      hasUntouched: false,
    })
  })

  it.each([
    { late: 1, minutes: 2 },
    { late: 2, minutes: 4 },
    { late: 200, minutes: 4 },
  ])('doubles the overlap after a day: $late', ({ late, minutes }) => {
    expect(begin({ ...read, late }, [], NOW + DAY)).toMatchObject({ overlap: minutes * MINUTE, late: 0 })
  })

  it('doubles it to an hour at most', () => {
    expect(begin({ ...read, late: 2, overlap: 60 * MINUTE }, [], NOW + DAY).overlap).toBe(60 * MINUTE)
    expect(begin({ ...read, late: 2, overlap: DAY }, [], NOW + DAY).overlap).toBe(DAY)
  })

  it('is told once where its field is as before', () => {
    const after = verifyChanges(read, [{ at: readMoment(at(20)), isTouched: false }])

    expect(after).toMatchObject({ late: 0, hasUntouched: true })
    expect(changesWarnings(read, after)).toEqual([
      'a row changed and its updated_at did not: such changes come with older pages and full walks',
    ])
    expect(changesWarnings(after, after)).toEqual([])
  })

  it('says nothing while pages are left over, or nothing is asked', () => {
    const rows = [{ at: readMoment(at(20)), isTouched: true }]

    expect(verifyChanges(asking, rows)).toBe(asking)
    const off = { ...read, off: 'ignored' }
    expect(verifyChanges(off, rows)).toBe(off)
  })

  const upsert = (field: string, change: 'added' | 'changed' = 'changed') => ({
    key: { id: '1', parts: [] },
    text: '',
    value: { updated_at: at(20), state: 'paid' },
    change,
    fields: [field.split('.')],
  })

  it.each([
    { field: 'updated_at', isTouched: true },
    { field: 'state', isTouched: false },
    { field: 'updated_at_text', isTouched: false },
  ])('has its field changed if that differs: $field', ({ field, isTouched }) => {
    expect(changedRows([upsert(field), upsert(field, 'added')], RULES, [])).toMatchObject([{ isTouched }])
  })

  it('is unknown where the field is not compared', () => {
    expect(changedRows([upsert('state')], RULES, ['updated_at'])).toEqual([])
  })
})

describe('another parameter or field', () => {
  it('begins anew', () => {
    const state = { changes: asking, older: 1 }

    expect(keepChanges(state, RULES)).toBe(state)
    expect(keepChanges(state, { ...RULES, field: 'changed_at' })).toEqual({ older: 1 })
    expect(keepChanges(state, null)).toEqual({ older: 1 })
    expect(keepChanges(null, RULES)).toBeNull()
  })
})
