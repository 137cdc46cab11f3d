import { describe, expect, it } from 'vitest'
import { nextRun, restLine } from '../../../src/cli/commands/start.ts'
import { createBoard, progressLines, wholePercent } from '../../../src/cli/output/board.ts'
import {
  estimate,
  type JobProgress,
  msPerPage,
  newProgress,
  noteBudget,
  noteEvent,
  timeLeft,
  timeLeftOfAll,
} from '../../../src/cli/output/progress.ts'
import { cellsOf } from '../../../src/cli/output/terminal.ts'

const NOTHING_DONE = { done: 0, pagesDone: 0, rowsDone: 0, percent: 0 }

type Event = Parameters<typeof noteEvent>[1]

/** A request that leaves at a time, and its page that is written at another. */
function read(job: JobProgress, page: { number: number; lastPage: number }, sent: number, written: number) {
  noteEvent(job, { kind: 'request' }, sent)
  noteEvent(job, { kind: 'page', page, itemsInWalk: page.number * 25 } as Event, written)
}

/** A job that has read so many of 40 pages in a second each. */
function reading(pages: number, name = 'acme orders'): JobProgress {
  const job = newProgress(name, 'token')
  const walk = { checkpoint: { nextPage: 1, pass: 1 }, rowsSeen: 0 }
  noteEvent(job, { kind: 'start', walk } as Event, 0)
  for (let page = 1; page <= pages; page++)
    read(job, { number: page, lastPage: 40 }, (page - 1) * 1000, page * 1000)
  job.allowedPerMinute = 60
  job.budgetNow = { at: 2000, known: { open: 38, freshMs: 60_000, each: 60, windowMs: 60_000 } }
  return job
}

const TWENTY = Array.from({ length: 20 }, (_, index) =>
  reading(index < 5 ? 2 : 0, `organization-${index} orders`),
)

describe('the progress lines', () => {
  it.each([
    [80, 24, 12],
    [40, 24, 12],
    [80, 6, 3],
    [80, 2, 1],
    [12, 4, 2],
  ])('of 20 lists fit on %i columns and half of %i lines', (width, height, most) => {
    const lines = progressLines(TWENTY, NOTHING_DONE, { width, height }, 2000)

    expect(lines.length).toBeLessThanOrEqual(most)
    for (const line of lines) expect(cellsOf(line)).toBeLessThanOrEqual(width)
    // No number stands without what it counts.
    for (const line of lines) expect(line).not.toMatch(/(?<! of| page) [\d,]+$/)
  })

  it('say of all together how long the shared limit takes, and who waits', () => {
    const lines = progressLines(TWENTY, NOTHING_DONE, { width: 79, height: 24 }, 2000)

    expect(lines[0]).toBe('20 lists: 5 reading, 15 waiting  10 pages  13 minutes left  250 rows')
    expect(lines[1]).toBe('organization-0 orders   5 % page 2 of 40  13 minutes left  50 rows')
    expect(lines[6]).toBe('organization-5 orders   waiting for its turn')
    expect(lines.at(-1)).toBe('organization-10 orders  waiting for its turn')
  })
})

it('the line of a list says when its first request has left', () => {
  const job = newProgress('acme orders', 'token')
  const line = () => progressLines([job], NOTHING_DONE, { width: 79, height: 24 }, 0)[0]
  noteEvent(job, { kind: 'start', walk: { checkpoint: { nextPage: 1, pass: 1 } } } as Event, 0)
  const before = line()
  noteEvent(job, { kind: 'request' }, 0)

  expect([before, line()]).toEqual(['acme orders  waiting for its turn', 'acme orders  first page...'])
})

function refuse(): never {
  throw new Error('it was asked for')
}

describe('the time that is left', () => {
  it('of all lists is that of the longest one', () => {
    const [short, long] = [reading(30), { ...reading(5), budget: 'globex' }]

    expect(timeLeftOfAll([short, long], 5000)).toBe(timeLeft(long, [short, long], 5000))
    expect(timeLeftOfAll([reading(0)], 0)).toBeNull()
  })

  it('is not asked for where no line can be drawn: thousands of jobs end at once at a stop', () => {
    const terminal = {
      log: { write: () => true },
      canDraw: false,
      isWatched: false,
      width: refuse,
      height: refuse,
      draw: refuse,
    }
    const board = createBoard({ now: refuse, every: () => () => {} }, terminal as never)
    const [first, second] = [reading(1), reading(2)]
    board.add(first)
    board.add(second)

    board.end(first)
    board.close()

    expect(board.jobs()).toEqual([])
  })
})

describe('the percent', () => {
  it('of a list never falls, and is 100 only at its end', () => {
    const job = reading(40)
    read(job, { number: 3, lastPage: 60 }, 50_000, 50_000)

    expect(job.percent).toBe(99)
  })

  it('of all lists never falls', () => {
    const jobs = [reading(20), reading(0)]

    expect(wholePercent([reading(20)], NOTHING_DONE)).toBe(50)
    expect(wholePercent(jobs, { ...NOTHING_DONE, percent: 50 })).toBe(50)
    expect(wholePercent([reading(10)], { ...NOTHING_DONE, percent: 50 })).toBe(50)
    expect(wholePercent([reading(10)], { pagesDone: 40, percent: 50 })).toBe(62)
  })
})

describe('what a page takes', () => {
  it('is known after a few, without waits, and without those that waited for a lock', () => {
    const job = newProgress('acme orders', 'token')
    const readNext = (sent: number, written: number) =>
      read(job, { number: job.answers + 1, lastPage: 9 }, sent, written)
    readNext(0, 100)
    noteEvent(job, { kind: 'wait', reason: 'the rate limit', until: 6100 }, 100)
    readNext(6100, 6200)
    expect(msPerPage(job)).toBeNull()
    readNext(6200, 46_200)

    expect(msPerPage(job)).toBe(100)
  })

  it('is less by a wait that began before the page was written', () => {
    const job = newProgress('acme orders', 'token')
    for (const sent of [0, 6000, 12_000]) {
      noteEvent(job, { kind: 'request' }, sent)
      noteEvent(job, { kind: 'wait', reason: 'the rate limit', until: sent + 6000 }, sent + 40)
      noteEvent(job, { kind: 'page', page: { number: 1, lastPage: 9 }, itemsInWalk: 25 } as Event, sent + 100)
    }

    expect(msPerPage(job)).toBe(40)
  })
})

/** A list of so many pages of which one has been read, or three in so many milliseconds each; `open`: what the minute still allows. */
function begun(pages: number, allowed: number | null, { ms = 0, open = 0 } = {}) {
  const job = newProgress('acme orders', 'token')
  for (let page = 1; page <= (ms === 0 ? 1 : 3); page++)
    read(job, { number: page, lastPage: pages }, (page - 1) * ms, page * ms)
  const known = { open, freshMs: 60_000, each: allowed ?? 1, windowMs: 60_000 }
  const budget = allowed === null ? null : { at: 3 * ms, known }
  return {
    now: 3 * ms,
    job: Object.assign(job, { furthest: 0, allowedPerMinute: allowed, budgetNow: budget }),
  }
}

describe('the estimate', () => {
  it.each<[string, ReturnType<typeof begun>, JobProgress[], string | undefined]>([
    ['the rate limit', begun(4000, 60), [], '4,000 pages, about 67 minutes at 60 a minute'],
    ['a slow server', begun(100, 600, { ms: 6000 }), [], '100 pages, about 10 minutes'],
    ['the speed where no limit is known', begun(600, null, { ms: 100 }), [], '600 pages, about 60 seconds'],
    ['nothing, after a single answer that may have been slow', begun(600, null), [], undefined],
    [
      'all lists that share the limit, those without an answer too',
      begun(40, 60),
      Array.from({ length: 19 }, () => newProgress('other', 'token')),
      '40 pages, about 14 minutes at 60 a minute, shared by 20 lists',
    ],
    [
      'no more of a longer list than of this one',
      begun(10, 60),
      [begun(4000, 60).job],
      '10 pages, about 60 seconds at 60 a minute, shared by 2 lists',
    ],
    [
      'the latest answer of any list',
      { ...begun(10, 60, { ms: 1000 }), job: begun(10, 60, { open: 100 }).job },
      [begun(10, 60, { ms: 1000 }).job],
      '10 pages, about 60 seconds at 60 a minute, shared by 2 lists',
    ],
    [
      'nothing, after a single answer, where this minute allows all of it',
      begun(10, 60, { open: 60 }),
      [],
      undefined,
    ],
    [
      'the next minute, where nothing is left of this one',
      begun(1, 60),
      [],
      '1 page, about 60 seconds at 60 a minute',
    ],
    [
      'the speed, where a fresh minute allows all of it',
      begun(84, 120, { ms: 13, open: 119 }),
      [],
      '84 pages, about 1 second',
    ],
  ])('goes by %s', (_, { job, now }, others, words) => {
    const known = estimate(job, [job, ...others], now) ?? undefined

    expect(known?.text).toBe(words)
    expect(known?.by).toBe(words && (words.includes('a minute') ? 'budget' : 'speed'))
  })
})

describe('the budget', () => {
  const rules = { requestsPerMinute: 600, sharePercent: 100 }
  const silent = { announcedLimit: null, announcedLeft: null }

  it('has spent what the lists that share it sent in the last minute, not what they sent before', () => {
    const [first, second] = [newProgress('acme orders', 'token'), newProgress('acme establishments', 'token')]
    const elsewhere = newProgress('globex orders', 'globex')
    for (let sent = 0; sent < 600_000; sent += 600) noteEvent(first, { kind: 'request' }, sent)
    for (const other of [second, elsewhere]) noteEvent(other, { kind: 'request' }, 600_000)

    noteBudget(first, [first, second, elsewhere], silent, rules, 600_000)
    expect(first.budgetNow).toMatchObject({ at: 600_000, known: { open: 600 - 99 - 1, each: 600 } })
    noteBudget(second, [first, second], silent, rules, 700_000)
    expect(second.budgetNow?.known.open).toBe(600)
  })

  it('of a server slower than it leaves the estimate to the speed, however long the list is', () => {
    const job = newProgress('acme orders', 'token')
    for (let page = 1; page <= 1000; page++)
      read(job, { number: page, lastPage: 1010 }, (page - 1) * 1000, page * 1000)
    noteBudget(job, [job], silent, rules, 1_000_000)

    expect(estimate(job, [job], 1_000_000)?.text).toBe('10 pages, about 10 seconds')
  })
})

describe('the line at rest', () => {
  const NOW = Date.UTC(2026, 10, 22, 21)

  it('shows what runs next, and when', () => {
    const jobs = ['acme orders', 'acme establishments', 'globex orders'].map((name, index) => ({
      name,
      expression: index < 2 ? '0 3 * * *' : '0 4 * * *',
      timezone: 'UTC',
    }))

    expect(restLine(nextRun(jobs, NOW), NOW)).toBe(
      'idle; next run in 6 hours (2026-11-23T03:00:00Z): acme orders and 1 more',
    )
  })
})
