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
  isRefusedQuestion,
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

/** An API that is asked for its first page. */
const asking = begin()

describe('what is asked first', () => {
  it('is what changed since two minutes before the largest value, less the time since the list was read', () => {
    expect(begin()).toMatchObject({ mark: at(25), ask: { since: at(23), page: 1 } })
  })

  it.each([
    { shown: moments('2026-11-20', '2026-11-20'), since: '2026-11-18' },
    { shown: moments(at(0), at(60), at(120)), since: '2026-11-20T08:55:00Z' },
    { shown: moments(at(0), at(-60), at(1)), since: at(-6) },
    // Rows that changed at once.
    { shown: moments(at(0), at(0), at(60)), since: at(53) },
  ])('is a whole unit before it where values are rounded to more: $since', ({ shown, since }) => {
    expect(begin(undefined, shown).ask).toMatchObject({ since })
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
    const left = { ...asking, ask: { since: at(1), page: 7, total: 900, above: null } }

    expect(begin(left)).toBe(left)
  })
})

describe('an API that gives older rows', () => {
  const IGNORING = { values: moments(at(29), at(21, 59)), total: 1000, next: 2 }

  it('ignores the parameter, and is asked once a day from then on', () => {
    const after = answer(asking, IGNORING)

    expect(after).toMatchObject({ ask: null, off: expect.stringContaining('ignores the parameter') })
    expect(begin(after, undefined, NOW + DAY - 1)).toBe(after)
    expect(changesWarnings(asking, after)).toEqual([expect.stringContaining('changedSince is off')])
    const tried = begin(after, undefined, NOW + DAY)
    expect(tried).toMatchObject({ mark: at(25), ask: { page: 1 }, off: after.off })
    expect(answer(tried, IGNORING)).toMatchObject({ ask: null, off: after.off })
    expect(changesWarnings(tried, answer(tried, IGNORING))).toEqual([])
  })

  it('is on again once it heeds it', () => {
    const tried = begin(answer(asking, IGNORING), undefined, NOW + DAY)
    const one = answer(tried, { values: moments(at(29), at(28)), total: 60, next: 2 })
    const all = answer(one, { values: moments(at(27)), total: 60 })

    expect([one.off, all.off]).toEqual([tried.off, null])
    expect(changesWarnings(one, all)).toEqual([expect.stringContaining('changedSince is on again')])
  })

  it.each([
    {
      name: 'after the clock was set back',
      known: { off: 'ignored', againAt: NOW + 2 * DAY },
      isAsked: true,
    },
    { name: 'that holds the token for it', known: { off: 'refused', againAt: null }, isAsked: false },
  ])('is tried at once, or never: $name', ({ known, isAsked }) => {
    expect(begin({ ...asking, ask: null, ...known }).ask !== null).toBe(isAsked)
  })

  it.each([
    { name: 'rounds down', values: moments(at(22)) },
    { name: 'has a row of the far future', values: moments('2031-01-01T00:00:00Z') },
    { name: 'gives a row without a time', values: [null, ...moments(at(29))] },
  ])('is not one that $name', ({ values }) => {
    expect(answer(asking, { values, total: 1 }).off).toBeNull()
  })
})

/** What becomes of it if it answers so, one refresh after the other. */
function become(...given: readonly Partial<ChangesAnswer>[]) {
  return given.reduce<ChangedSince>((state, one) => answer(begin(state), one), begin())
}
const times = (count: number, one: Partial<ChangesAnswer>) => Array.from({ length: count }, () => one)

describe('an API whose answers are of no use', () => {
  const ALL = { values: moments(at(29)), total: 501, next: 2 }
  const NOTHING = { values: [], total: 0 }
  const SOME = { values: moments(at(29)), total: 1 }

  it.each([
    {
      what: 'nothing',
      given: NOTHING,
      off: '12 times in a row the API gave nothing, though rows have changed; it is tried again each day',
    },
    {
      what: 'nearly all',
      given: ALL,
      off: '12 times in a row the API gave more than half of the list; it is tried again each day',
    },
  ])('is not asked again after an hour of them: $what', ({ given, off }) => {
    expect(become(...times(11, given)).off).toBeNull()
    expect(become(...times(12, given)).off).toBe(off)
    expect(become(...times(11, given), SOME, ...times(11, given)).off).toBeNull()
  })

  it('is off again at the first one a day later', () => {
    const off = become(...times(12, ALL))

    expect(answer(begin(off, undefined, NOW + DAY), ALL)).toMatchObject({
      ask: null,
      off: expect.any(String),
    })
    expect(answer(begin(off, undefined, NOW + DAY), SOME)).toMatchObject({ off: null, useless: 0 })
  })

  it('has its mark learned anew: nearly all may have changed at once, and the row of the mark may have gone', () => {
    expect(become(ALL)).toMatchObject({ mark: null, ask: null })
    expect(become(...times(5, NOTHING)).mark).toBe(at(25))
    expect(become(...times(6, NOTHING)).mark).toBeNull()
  })

  it.each([
    { values: moments(at(29)), total: 500, next: 2 },
    { values: moments(at(29)), total: 25, next: null },
  ])('is not one that gives less than half, or a page: $total', (given) => {
    expect(answer(asking, given, given.next ? 1000 : 30)).toMatchObject({ mark: at(29) })
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
    const known = { ...two, ask: asking.ask, mark: asking.mark, seen: null }
    expect(answer(known, { values: moments(at(24), at(40)), total: 60, next: 2 })).toMatchObject({
      mark: at(40),
      ask: { since: at(38), page: 1 },
    })
  })

  it('are asked again after a fall also where the last of them came', () => {
    const last = { ...asking, ask: { since: at(23), page: 4, total: 100, above: null } }

    expect(answer(last, { values: moments(at(30)), total: 99 }).ask).toMatchObject({ page: 3, total: 99 })
  })

  it('are given up where they are more than half of the list', () => {
    const far = { ...asking, ask: { since: at(23), page: 21, total: null, above: null } }

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

  it('move the mark of the next reading to the largest value of all, where the first page shows none that is younger', () => {
    const one = answer(asking, { values: moments(at(25), at(24)), total: 60, next: 2 })
    const two = answer(one, { values: moments(at(40), at(30)), total: 60, next: 3 })
    const all = answer(two, { values: moments(at(26)), total: 60 })
    const next = answer(begin(all), { values: moments(at(25), at(24)), total: 61, next: 2 })

    expect(all).toMatchObject({ mark: at(25), seen: at(40) })
    expect(next).toMatchObject({ mark: at(40), ask: { since: at(23), page: 2 } })
    // What was not read comes again.
    expect(afterRefusal(next, 'SERVER_ERROR', NOW)).toMatchObject({ mark: at(23), seen: null })
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
      ask: { since: at(23), page: 3, total: 60, above: null },
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
    const once = afterRefusal(asking, 'UNEXPECTED_STATUS', NOW)

    expect(once).toMatchObject({ off: null, ask: null })
    expect(answer({ ...once, ask: asking.ask }, { values: moments(at(29)), total: 1 })).toMatchObject({
      useless: 0,
    })
    expect(afterRefusal(once, 'UNEXPECTED_STATUS', NOW)).toMatchObject({
      off: 'the API refuses requests with updated_after (UNEXPECTED_STATUS); it is tried again each day',
      againAt: NOW + DAY,
    })
    // Each of these holds the token.
    expect(afterRefusal(once, 'UNAUTHORIZED', NOW)).toMatchObject({ againAt: null })
  })

  it('is asked again after the first time, whatever another version has counted', () => {
    for (const useless of [undefined, null, Number.NaN]) {
      const known = { ...asking, useless } as ChangedSince
      expect(afterRefusal(known, 'BAD_REQUEST', NOW).off).toBeNull()
    }
  })

  it('is another matter than one that cannot be reached', () => {
    expect(isRefusedQuestion(new JobError('BAD_REQUEST', ''))).toBe(true)
    expect(isRefusedQuestion(new RetryableError('SERVER_ERROR', ''))).toBe(true)
    expect(isRefusedQuestion(new RetryableError('NETWORK', ''))).toBe(true)
    expect(isRefusedQuestion(new RateLimitedError(''))).toBe(true)
    expect(isRefusedQuestion(new TokenRefusedError(''))).toBe(true)
    expect(isRefusedQuestion(new MirrorError(''))).toBe(false)
  })

  it('by a page behind the first is asked for it again from before, and is off where that goes on', () => {
    const two = first(moments(at(40), at(39)))
    const once = afterRefusal(two, 'SERVER_ERROR', NOW)

    expect(once).toMatchObject({ mark: at(23), ask: null, off: null, useless: 6 })
    const again = answer(
      { ...once, ask: asking.ask },
      { values: moments(at(40), at(39)), total: 60, next: 2 },
    )
    expect(afterRefusal(again, 'SERVER_ERROR', NOW).off).toMatch(/refuses requests/)
    expect(isRefusedQuestion(new Error('a defect'))).toBe(false)
  })
})

const rowsAt = (time: string) => [{ at: readMoment(time), isTouched: true }]

describe('what pages of the list itself changed', () => {
  const read = answer({ ...asking, from: Date.parse(at(10)) }, { values: moments(at(40)), total: 1 })

  it.each([
    { name: 'was late', time: at(37, 59), isLate: true },
    { name: 'will be asked for again', time: at(38), isLate: false },
    { name: 'changed before it was asked for', time: at(10), isLate: false },
  ])('$name: $time', ({ time, isLate }) => {
    expect(verifyChanges(read, rowsAt(time), NOW)).toMatchObject({
      ...(isLate ? { lateAt: NOW } : {}),
      hasUntouched: false,
    })
    expect('lateAt' in verifyChanges(read, rowsAt(time), NOW)).toBe(isLate)
  })

  it.each([
    { hours: 0, minutes: 4 },
    { hours: 23, minutes: 4 },
    { hours: 24, minutes: 2 },
  ])('doubles the overlap if it was late twice within a day: $hours hours', ({ hours, minutes }) => {
    const once = verifyChanges(read, rowsAt(at(30)), NOW)
    const twice = verifyChanges(once, rowsAt(at(31)), NOW + (hours * DAY) / 24)

    expect(twice.overlap).toBe(minutes * MINUTE)
    // The same again shows nothing of it.
    if (hours < 24) expect(verifyChanges(twice, rowsAt(at(32)), NOW + DAY).lateAt).toBeUndefined()
  })

  it.each([
    { overlap: 60 * MINUTE, expected: 60 * MINUTE },
    { overlap: 1440 * MINUTE, expected: 1440 * MINUTE },
  ])('doubles it to an hour at most: $overlap', ({ overlap, expected }) => {
    const known = { ...read, mark: at(9000), lateAt: NOW, overlap }

    expect(verifyChanges(known, rowsAt(at(11)), NOW)).toMatchObject({ overlap: expected, lateAt: undefined })
  })

  it('is told once where its field is as before', () => {
    const after = verifyChanges(read, [{ at: readMoment(at(20)), isTouched: false }], NOW)

    expect(after).toMatchObject({ hasUntouched: true })
    expect(changesWarnings(read, after)).toEqual([
      'a row changed but its updated_at did not: only older pages and full walks find such changes',
    ])
    expect(changesWarnings(after, after)).toEqual([])
  })

  it('says nothing while pages are left over, or nothing is asked', () => {
    const rows = [{ at: readMoment(at(20)), isTouched: true }]

    expect(verifyChanges(asking, rows, NOW)).toBe(asking)
    const off = { ...read, off: 'ignored' }
    expect(verifyChanges(off, rows, NOW)).toBe(off)
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
