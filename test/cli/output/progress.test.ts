import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextRun, restLine } from '../../../src/cli/commands/start.ts'
import { createBoard, progressLines, wholePercent } from '../../../src/cli/output/progress/board.ts'
import {
  type JobProgress,
  msPerAnswer,
  newProgress,
  notePage,
  noteRequest,
  noteStart,
  noteWait,
  timeLeft,
  timeLeftOfAll,
} from '../../../src/cli/output/progress/job-progress.ts'
import { cellsOf } from '../../../src/cli/output/terminal.ts'

const NOTHING_DONE = { done: 0, pagesDone: 0, rowsDone: 0, percent: 0 }

/** A job that has read so many of 40 pages in a second each. */
function reading(pages: number, name = 'acme orders'): JobProgress {
  const job = newProgress(name, 'token')
  noteStart(job, 1, 1, 0)
  for (let page = 1; page <= pages; page++) {
    noteRequest(job, (page - 1) * 1000)
    notePage(job, { number: page, lastPage: 40 }, page * 25, page * 1000)
  }
  job.allowedPerMinute = 60
  job.budgetNow = { open: 38, freshMs: 60_000, each: 60, windowMs: 60_000 }
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
    expect(lines.at(-1)).toBe('and 10 more  waiting')
  })
})

function refuse(): never {
  throw new Error('it was asked for')
}

describe('the time that is left', () => {
  it('of all lists is that of the one that takes longest', () => {
    const anyJob = fc
      .record({
        pages: fc.nat({ max: 40 }),
        budget: fc.constantFrom('acme', 'globex', 'initech'),
        until: fc.nat({ max: 100_000 }),
        isLimited: fc.boolean(),
      })
      .map(({ pages, budget, until, isLimited }) => {
        const job = { ...reading(pages), budget }
        if (until > 50_000) noteWait(job, 'the rate limit', until, 40_000)
        if (!isLimited) job.budgetNow = null
        return job
      })
    fc.assert(
      fc.property(fc.array(anyJob, { maxLength: 8 }), (jobs) => {
        const each = jobs.map((job) => timeLeft(job, jobs, 40_000)).filter((ms) => ms !== null)

        expect(timeLeftOfAll(jobs, 40_000)).toEqual(each.length === 0 ? null : Math.max(...each))
      }),
    )
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
    notePage(job, { number: 3, lastPage: 60 }, 1000, 50_000)

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

describe('what an answer takes', () => {
  it('leaves out waits, and answers whose pages waited for a lock', () => {
    const job = newProgress('acme orders', 'token')
    noteRequest(job, 0)
    notePage(job, { number: 1, lastPage: 9 }, 25, 100)
    noteWait(job, 'the rate limit', 6100, 100)
    noteRequest(job, 6100)
    notePage(job, { number: 2, lastPage: 9 }, 50, 6200)

    expect(msPerAnswer(job)).toBe(100)

    for (const [sent, written] of [
      [6200, 46_200],
      [46_200, 46_300],
      [46_300, 86_300],
    ] as const) {
      noteRequest(job, sent)
      notePage(job, { number: 3, lastPage: 9 }, 75, written)
      expect(msPerAnswer(job)).toBe(100)
    }
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
      'at rest; next run in 6 hours (2026-11-23T03:00:00Z): acme orders and 1 more',
    )
  })
})
