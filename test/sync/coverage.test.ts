import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Answer, WalkRules } from '../../src/sync/coverage/pass.ts'
import {
  judgePass,
  type PassEnd,
  type WalkEnd,
  WalkReading,
  type WalkResult,
} from '../../src/sync/coverage/read-list.ts'
import { replay } from '../../src/sync/resume.ts'
import type { LedgerEntry } from '../../src/sync/store.ts'
import { jobOf } from '../helpers/jobs.ts'
import { LONG } from '../helpers/long.ts'
import { upTo } from '../helpers/scripted-list.ts'
import { RULES } from '../helpers/test-mirror.ts'
import { MOVEMENTS, type MovingList } from '../lab/coverage/moving-list.ts'
import { createRandom } from '../simulation/random.ts'

// Which pages a walk asks for and what it says of them, from its answers alone; and that its page ledger is enough to go on from.

/** A pass over four pages that read all ten items of a list. */
const WHOLE: PassEnd = {
  moved: false,
  answers: 4,
  distinct: 10,
  repeated: 0,
  total: 10,
  rises: 0,
  isSettled: true,
  isShort: false,
}
const FIRST: WalkEnd = {
  pass: 1,
  items: 10,
  counted: true,
  moved: false,
  totalChanged: false,
  totals: { first: 10, last: 10 },
}

const SHORT = { distinct: 9 }
const ONE = { answers: 1, total: 3 }
const SETTLED = { moved: true }
const UNSETTLED = { moved: true, isSettled: false }
const GROWN = { totals: { first: 10, last: 12 } }
const LAST = { pass: 3, items: 9 }
const CUT = { isShort: true, total: null, answers: 1 }
const DRIFTED = { lastCoverage: 'drifted' } as const

describe('the end of a pass', () => {
  it.each<[string, Partial<PassEnd>, Partial<WalkEnd>, string, Partial<WalkRules>?]>([
    ['it moved, and all is explained', SETTLED, {}, 'repaired'],
    ['it moved, and not all is explained', UNSETTLED, {}, 'again'],
    ['it moved, and as many are missing as came', { ...SETTLED, rises: 2 }, GROWN, 'repaired'],
    ['it moved, and more are missing than came', { ...SETTLED, rises: 1 }, GROWN, 'again'],
    ['nothing moved, and one item is missing', SHORT, {}, 'again'],
    ['one answer of its total with an item twice', { ...ONE, distinct: 2, repeated: 1 }, {}, 'steady'],
    ['one answer shorter than its total', { ...ONE, distinct: 2 }, {}, 'again'],
    ['one answer without a total', { answers: 1, total: null }, { counted: false }, 'steady'],
    ['later, all passes have the total', { ...UNSETTLED, distinct: 9 }, { pass: 2 }, 'repaired'],
    ['the same, of a total that changed', UNSETTLED, { pass: 2, totalChanged: true }, 'again'],
    ['the last is not explained', UNSETTLED, { pass: 3, items: 12 }, 'drifted'],
    ['the last is short, one moved', SHORT, { ...LAST, moved: true }, 'drifted'],
    ['every pass was short and nothing moved', SHORT, LAST, 'incomplete'],
    ['it ends before the last page that it names', CUT, { counted: false }, 'again'],
    ['every pass ended so', CUT, { pass: 3, counted: false }, 'incomplete'],
    ['the last walk drifted, and this one does', UNSETTLED, {}, 'drifted', DRIFTED],
    ['the last walk drifted, and this one is short', SHORT, { items: 9 }, 'again', DRIFTED],
  ])('%s', (_what, pass, walk, expected, rules = {}) => {
    const verdict = judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, { ...RULES, ...rules })

    expect(verdict.kind === 'complete' ? verdict.coverage : verdict.kind).toBe(expected)
  })

  it.each<[Partial<PassEnd>, Partial<WalkEnd>, string]>([
    [{ ...SHORT, repeated: 2 }, {}, '9 items came of a total of 10, 2 of them twice'],
    [UNSETTLED, { totalChanged: true }, '10 items came of a total of 10, and the total changed meanwhile'],
    [{ ...CUT, distinct: 9 }, {}, '9 items came, and the last page says that there are more pages'],
  ])('says in words what does not add up: %j', (pass, walk, why) => {
    expect(judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, RULES).why).toBe(why)
  })
})

const PER_PAGE = 3

/** What a server shows of a list. */
function answerOf(ids: readonly number[], page: number, perPage = PER_PAGE): Answer {
  const lastPage = Math.max(Math.ceil(ids.length / perPage), 1)
  const shown = ids.slice((page - 1) * perPage, page * perPage).map(String)
  const next = page < lastPage ? page + 1 : null
  return { page, ids: [...new Set(shown)], items: shown.length, total: ids.length, next, lastPage }
}

type Move = (ids: number[], reading: WalkReading) => unknown
type Shows = (answer: Answer, number: number) => Partial<Answer>

const cut =
  (count: number): Move =>
  (ids) =>
    ids.splice(0, count)
const front =
  (...added: number[]): Move =>
  (ids) =>
    ids.unshift(...added)
const push =
  (from: number, to: number): Move =>
  (ids) =>
    ids.push(...upTo(to).slice(from - 1))
const lastToFront: Move = (ids) => ids.unshift(ids.pop() ?? 0)
/** With a new item instead of its last one. */
const turnRound =
  (added: number): Move =>
  (ids) =>
    ids.splice(0, 30, ...[added, ...ids.slice(0, -1)].toReversed())
/** The process dies, and another one goes on. */
const dies: Move = (_ids, reading) => reading.resume()

/** A next page is named behind each full one. */
const nextOf = ({ page, items }: Answer) => ({ next: items === PER_PAGE ? page + 1 : null })
const shrinking: Shows = (answer) => (answer.items > 0 ? nextOf(answer) : { total: 8 })
const noTotal = () => ({ total: null })
const noLastPage = () => ({ lastPage: null })
const hiding: Shows = ({ total }) => ({ total: Number(total) + 5 })
const uncounted: Shows = (answer) => ({ ...nextOf(answer), total: null })
const twiceOnAPage: Shows = ({ items }) => ({ items: items + 1, total: null })
/** The second page ends the list, and says that there are more. */
const ending: Shows = ({ page, next }) => ({ next: page === 2 ? null : next, total: null })
const PARTIAL = { kind: 'partial', firstPage: 3 } as const
/** Pages of one item, and after five of none. */
const endless: Shows = ({ page }, number) => {
  const ids = number > 5 ? [] : [`${page}`]
  return { ids, items: ids.length, next: page + 1, total: null, lastPage: page + 1 }
}

/** What happens before an answer; the answers are counted from 1. */
type Moves = Record<number, Move[]>

interface Reads {
  perPage?: number
  shows?: Shows
  rules?: Partial<WalkRules>
}

/** A walk over so many items. Returns the pages that it asks for, what comes of it, and what it has not seen. */
function walkOver(items: number, moves: Moves = {}, { perPage, shows, rules }: Reads = {}) {
  const reading = new WalkReading({ ...RULES, ...rules }, 'acme orders')
  const ids = upTo(items)
  const asked: number[] = []
  while (reading.question) {
    for (const move of moves[asked.length + 1] ?? []) move(ids, reading)
    const number = asked.push(reading.question.page)
    const page = answerOf(ids, reading.question.page, perPage)
    const answer = { ...page, ...shows?.(page, number) }
    reading.take(answer, number)
    // What came is never taken for missing, whatever it was asked for.
    expect(answer.ids.filter((id) => !reading.has(id))).toEqual([])
  }
  return { asked: asked.join(' '), reading, missed: ids.filter((id) => !reading.has(String(id))) }
}

/** The first pass lacks an item of page 2. */
const lacking: Shows = ({ ids }, number) => (number === 2 ? { ids: ids.slice(1), items: 2 } : {})
const SHIFTED = 'so that the total shows only that it grew'

describe('a walk over a list', () => {
  // With a page once more: the spot check. After a death, from the last page that was read.
  it.each<[what: string, items: number, asked: RegExp, Moves?, Shows?]>([
    ['without items', 0, /^1$/],
    ['of ten pages', 30, /^1 2 3 4 5 6 7 8 9 10 4$/],
    ['of ten pages, while a process dies', 30, /^1 2 2 3 4 5 6 7 8 9 10 4$/, { 3: [dies] }],
    ['that names an empty page behind its last full one', 9, /^1 2 3 4 1$/, {}, nextOf],
    ['that does, of one page', 3, /^1 2 1$/, {}, nextOf],
    ['of ten pages, that does not say how many', 30, /^1 2 3 4 5 6 7 8 9 10 4$/, {}, noLastPage],
  ])('that stands still is steady: %s (%i items)', (_what, items, pages, moves, shows) => {
    const { asked, reading, missed } = walkOver(items, moves, shows && { shows })

    expect(asked).toMatch(pages)
    expect(reading.result).toMatchObject({ coverage: 'steady' })
    expect(missed).toEqual([])
  })

  it.each<[what: string, items: number, asked: RegExp, Moves, Reads?]>([
    // The front is read again, and page 2 is compared with what is known.
    ['gets an item in front', 11, /^1 2 3 4 2 1/, { 2: [front(90)] }],
    // A step back: the pages before, until one holds a known item.
    ['loses one behind the reader', 11, /^1 2 1 3 4 2 1/, { 2: [cut(1)] }],
    ['has its last item moved to the front', 11, /^1 2 3 4 2 1/, { 2: [lastToFront] }],
    // Known by the page that is asked for once more; then it is read again.
    ['has two items that change places', 11, /^1 2 3 4 1 /, { 2: [(ids) => ids.splice(0, 2, 2, 1)] }],
    [
      `slides to earlier pages and grows while its last page is awaited again, ${SHIFTED}`,
      211,
      / 44 22 44 43/,
      { 10: [push(212, 216)], 45: [cut(2), push(217, 224)] },
      { perPage: 5 },
    ],
    [
      'slides onto the page where a step back began, and grows before the next page',
      60,
      /^1 2 3 4 3 2 4 3 5/,
      { 4: [cut(1)], 5: [cut(3)], 7: [push(61, 64)] },
    ],
    [
      'loses another one behind the reader, when one has come in front during a step back',
      60,
      /^1 2 3 4 3 4 3 5/,
      { 4: [cut(1)], 5: [front(90)], 6: [cut(1)] },
    ],
    [
      'loses one between the pages that a look back compares, and grows before the next page',
      420,
      / 128 64 129 128 /,
      { 2: [front(900)], 129: [(ids) => ids.splice(300, 1)], 130: [push(421, 421)] },
    ],
    [
      'ends before the next page, and grows in front before its last page is awaited again',
      13,
      /^1 2 3 4 5 4 5/,
      { 5: [cut(1)], 6: [front(90)] },
    ],
    ['has in its first pass fewer items than its total', 8, /^1 2 3 1 2 3 1/, {}, { shows: lacking }],
    // Behind the last item that was read, wherever that stands now.
    ['grows in front while a process dies', 30, /^1 2 2 3 4/, { 3: [dies, front(91, 92, 93, 94)] }],
    ['loses its front then', 30, /^1 2 2 1 3/, { 3: [dies, cut(6)] }],
    ['becomes shorter then than where the reader was', 30, /^1 2 2 1/, { 3: [dies, (ids) => ids.splice(2)] }],
    ['becomes shorter than its checkpoint', 10, /^1 2 3 3 1/, { 4: [dies, cut(7)] }],
    [
      'becomes shorter than the page on which a resumed walk looks for where it stopped',
      19,
      / 6 5 4 3/,
      { 7: [dies, cut(4), push(20, 22)], 8: [cut(7)] },
    ],
    [
      'slides onto that page, becoming shorter and then longer',
      60,
      / 5 4 3 2 5/,
      { 6: [dies, cut(6)], 7: [cut(3)], 10: [push(61, 66)] },
    ],
    [
      'slides behind the page on which a resumed walk stopped, and back before that is asked for again',
      60,
      /^1 2 3 4 5 5 4 5 4 6/,
      { 6: [dies, cut(4)], 7: [front(90)], 8: [cut(1)] },
    ],
    ['has become shorter, and names empty pages', 30, / 9 10 9 8 10 5/, { 10: [cut(3)] }, { shows: nextOf }],
  ])('that %s (%i items) is repaired, and misses nothing', (_what, items, pages, moves, reads) => {
    const { asked, reading, missed } = walkOver(items, moves, reads)

    expect(asked).toMatch(pages)
    expect(reading.result).toMatchObject({ coverage: 'repaired' })
    expect(missed).toEqual([])
  })

  it('over which at most one item comes or goes between two answers misses nothing if it is trusted', () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const { next: random } = createRandom(seed)
        const move = (next: number) => (ids: number[]) =>
          MOVEMENTS[random() < 0.5 ? 'insert' : 'remove']({ ids, next, random })
        const moves = upTo(200).map((number) => (random() < 0.5 ? [move(45 + number)] : []))
        const { reading, missed } = walkOver(45, moves)
        if (reading.result?.coverage === 'repaired') expect(missed.filter((id) => id <= 45)).toEqual([])
      }),
      { numRuns: LONG ? 10_000 : 500 },
    )
  })

  const MOVED = { repeatedAcrossPages: true }

  it.each<[what: string, asked: string, Moves, Reads, Partial<WalkResult>?]>([
    ['without totals', '1 2 3 4', {}, { shows: noTotal }],
    ['without totals, an item twice on a page', '1 2 3 4', {}, { shows: twiceOnAPage }],
    ['without totals, that moves', '1 2 3 4 5', { 3: [front(99)] }, { shows: noTotal }, MOVED],
    ['the same, while a process dies', '1 2 2 1 3', { 3: [dies, cut(4)] }, { shows: noTotal }, MOVED],
    ['cut short', '1 2', {}, { shows: ending, rules: { total: 'ignore' } }, { isShort: true }],
    ['without totals, that names empty pages', '1 2 3 4 5 4', {}, { shows: uncounted }],
    ['of which a part is read, and nothing in front of that', '3 4 3', { 2: [cut(2)] }, { rules: PARTIAL }],
  ])(
    'that nothing counts is read once, and says nothing of its coverage: %s',
    (_what, pages, moves, reads, result = {}) => {
      const { asked, reading } = walkOver(12, moves, reads)

      expect(asked).toBe(pages)
      const still = { coverage: null, isShort: false, repeatedAcrossPages: false }
      expect(reading.result).toMatchObject({ ...still, ...result })
    },
  )

  it('whose total counts more than it lists is not repaired by what comes meanwhile', () => {
    const { reading } = walkOver(11, { 3: [push(12, 12)] }, { shows: hiding })

    const why = '12 items came of a total of 17, and the total changed meanwhile'
    expect(reading.result).toMatchObject({ coverage: 'drifted', why })
  })

  it('that turns round all the time is drifted after so many passes, none of which asks for more than twice its pages', () => {
    const moves = upTo(100).map((number) => [turnRound(30 + number)])
    const { asked, reading } = walkOver(30, moves, { rules: { maxPasses: 2 } })

    expect(reading).toMatchObject({ pass: 2, result: { coverage: 'drifted' } })
    expect(asked.split(' ').length).toBeGreaterThanOrEqual(2 * 10)
    expect(asked.split(' ').length).toBeLessThanOrEqual(2 * 20)
  })

  it.each([
    ['it is interrupted', dies],
    ['the list becomes shorter than the next page', cut(40)],
  ])('that has asked again for as many pages as there are reads on to the end, also if %s', (_what, then) => {
    const moves = [...Array.from({ length: 44 }, () => [cut(1)]), [then]]
    const { asked, reading, missed } = walkOver(120, moves, { rules: DRIFTED })

    const pages = asked.split(' ')
    expect(pages.length - new Set(pages).size).toBeGreaterThan(20)
    expect(reading.result).toMatchObject({ coverage: 'drifted', isShort: false })
    expect(missed.filter((id) => id > 100)).toEqual([])
  })

  it('whose last page names one that always says that the list is shorter is read to its end', () => {
    const { asked, reading } = walkOver(9, {}, { shows: shrinking, rules: { maxPasses: 1 } })

    expect(asked).toMatch(/^1 2 3( 4 3)+/)
    expect(reading.result).toMatchObject({ coverage: 'drifted', isShort: false })
  })

  it('without end is given up after a thousand pages without a new item', () => {
    expect(() => walkOver(0, {}, { shows: endless })).toThrow(
      'acme orders: the list does not end: the last 1,000 pages brought nothing new',
    )
  })
})

const played = (entries: readonly LedgerEntry[], rules = RULES) =>
  replay(
    { id: 1, rules },
    {
      store: { readLedger: async (_walk, after) => entries.slice(after, after + 7) },
      job: jobOf(),
      yieldToEventLoop: async () => {},
      signal: new AbortController().signal,
    },
  )

const facts = (reading: WalkReading | null) => [
  reading?.question,
  reading?.result,
  reading?.items,
  reading?.keyed,
  reading?.grewAt,
]

const NAMES = Object.keys(MOVEMENTS) as (keyof typeof MOVEMENTS)[]

describe('a walk whose process dies', () => {
  it('goes on as if it had lived, whatever moves, wherever it dies, however often', async () => {
    const life = fc.record({
      seed: fc.nat(),
      items: fc.integer({ min: 0, max: 60 }),
      movements: fc.array(fc.constantFrom(...NAMES), { maxLength: 3 }),
      deaths: fc.array(fc.nat(40), { maxLength: 3 }),
      lastCoverage: fc.constantFrom(null, 'repaired' as const),
      hasTotal: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(life, async ({ seed, items, movements, deaths, lastCoverage, hasTotal }) => {
        const { next: random } = createRandom(seed)
        const list: MovingList = { ids: upTo(items), next: 1000, random }
        const rules = { ...RULES, lastCoverage }
        const lived = new WalkReading(rules, 'acme orders')
        const entries: LedgerEntry[] = []
        for (let answer = 0; lived.question; answer++) {
          if (deaths.includes(answer) && answer > 0) {
            lived.resume()
            // As often as a process dies before its first answer.
            if (deaths.length > 2) lived.resume()
          }
          if (random() < 0.3) for (const name of movements) MOVEMENTS[name](list)
          const page = answerOf(list.ids, lived.question.page)
          entries.push(lived.take(hasTotal ? page : { ...page, total: null }, answer))
          if (lived.question && answer % 5 > 0) continue
          const again = await played(entries, rules)
          expect(facts(again)).toEqual(facts(lived))
        }
        expect(lived.result).not.toBeNull()
      }),
      { numRuns: LONG ? 1000 : 100 },
    )
  })
})
