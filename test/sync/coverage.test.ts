import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Answer, WalkRules } from '../../src/sync/coverage/pass.ts'
import { judgePass, type PassEnd, type WalkEnd, WalkReading } from '../../src/sync/coverage/read-list.ts'
import { replay } from '../../src/sync/resume.ts'
import type { LedgerEntry } from '../../src/sync/store.ts'
import { jobOf } from '../helpers/jobs.ts'
import { LONG } from '../helpers/long.ts'
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
  isSettled: true,
  isShort: false,
}
const FIRST: WalkEnd = { pass: 1, items: 10, counted: true, moved: false, totalChanged: false }

const SHORT = { distinct: 9 }
const ONE = { answers: 1, total: 3 }
const SETTLED = { moved: true }
const UNSETTLED = { moved: true, isSettled: false }
const LAST = { pass: 3, items: 9 }
const CUT = { isShort: true, total: null, answers: 1 }
const DRIFTED = { lastCoverage: 'drifted' } as const

describe('the end of a pass', () => {
  it.each<[string, Partial<PassEnd>, Partial<WalkEnd>, string, Partial<WalkRules>?]>([
    ['nothing moved and all items came', {}, {}, 'steady'],
    ['it moved, and all is explained', SETTLED, {}, 'repaired'],
    ['it moved, and not all is explained', UNSETTLED, {}, 'again'],
    ['nothing moved, and one item is missing', SHORT, {}, 'again'],
    ['one answer longer than its total', { ...ONE, distinct: 4 }, {}, 'steady'],
    ['one answer of its total with an item twice', { ...ONE, distinct: 2, repeated: 1 }, {}, 'steady'],
    ['one answer shorter than its total', { ...ONE, distinct: 2 }, {}, 'again'],
    ['one answer without a total', { answers: 1, total: null }, { counted: false }, 'steady'],
    ['several answers without a total', { total: null }, { counted: false }, 'null'],
    ['the walk is partial', UNSETTLED, {}, 'null', { kind: 'partial' }],
    ['later, nothing moved', {}, { pass: 2, moved: true }, 'repaired'],
    ['later, all passes have the total', { ...UNSETTLED, distinct: 9 }, { pass: 2 }, 'repaired'],
    ['the same, of a total that changed', UNSETTLED, { pass: 2, totalChanged: true }, 'again'],
    ['the last is not explained', UNSETTLED, { pass: 3, items: 12 }, 'drifted'],
    ['the last is short, one moved', SHORT, { ...LAST, moved: true }, 'drifted'],
    ['every pass was short and nothing moved', SHORT, LAST, 'incomplete'],
    ['it ends before the last page that it names', CUT, { counted: false }, 'again'],
    ['every pass ended so', CUT, { pass: 3, counted: false }, 'incomplete'],
    ['the last walk drifted, and this one does', UNSETTLED, {}, 'drifted', DRIFTED],
    ['the last walk drifted, and this one is short', SHORT, { items: 9 }, 'again', DRIFTED],
    ['the last walk drifted, and this one does not', {}, {}, 'steady', DRIFTED],
  ])('%s', (_what, pass, walk, expected, rules = {}) => {
    const verdict = judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, { ...RULES, ...rules })

    expect(verdict.kind === 'complete' ? `${verdict.coverage}` : verdict.kind).toBe(expected)
  })

  it.each<[Partial<PassEnd>, Partial<WalkEnd>, string]>([
    [{ ...SHORT, repeated: 2 }, {}, '9 items came of a total of 10, 2 of them twice'],
    [UNSETTLED, { totalChanged: true }, '10 items came of a total of 10, and the total changed meanwhile'],
    [{ ...CUT, distinct: 9 }, {}, '9 items came, and the last page says that there are more pages'],
  ])('says in words what does not add up: %j', (pass, walk, why) => {
    expect(judgePass({ ...WHOLE, ...pass }, { ...FIRST, ...walk }, RULES)).toMatchObject({
      kind: 'again',
      why,
    })
  })
})

const PER_PAGE = 3

/** What a server shows of a list. */
function answerOf(ids: readonly number[], page: number, changed: Partial<Answer> = {}): Answer {
  const lastPage = Math.max(Math.ceil(ids.length / PER_PAGE), 1)
  const shown = ids.slice((page - 1) * PER_PAGE, page * PER_PAGE).map(String)
  const next = page < lastPage ? page + 1 : null
  const items = shown.length
  return { page, ids: [...new Set(shown)], items, total: ids.length, next, lastPage, ...changed }
}

interface Reads {
  /** May change the list before this answer. */
  before?: (answer: number, ids: number[]) => unknown
  instead?: (answer: Answer, number: number) => Partial<Answer>
}

/** Reads a list to its end. Returns what was asked. */
function readAll(reading: WalkReading, ids: number[], { before, instead }: Reads = {}): string[] {
  const asked: string[] = []
  while (reading.question) {
    before?.(asked.length + 1, ids)
    if (!reading.question) break
    const number = asked.push(`${reading.question.why} ${reading.question.page}`)
    const answer = answerOf(ids, reading.question.page)
    reading.take({ ...answer, ...instead?.(answer, number) }, number)
  }
  return asked
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const begin = (rules: Partial<WalkRules> = {}) => new WalkReading({ ...RULES, ...rules }, 'acme orders')
const noTotal = () => ({ total: null })

describe('a list that cannot be counted by its total', () => {
  const PARTIAL = { kind: 'partial' as const, firstPage: 3 }

  it.each<[string, Partial<WalkRules>, Reads, string[], boolean]>([
    ['no totals', {}, { instead: noTotal }, ['forward 1', 'forward 2', 'forward 3', 'forward 4'], false],
    [
      'no totals, and it moved',
      {},
      { instead: noTotal, before: (answer, ids) => answer === 3 && ids.unshift(99) },
      ['forward 1', 'forward 2', 'forward 3', 'forward 4', 'forward 5'],
      true,
    ],
    [
      'a part of a list, of which nothing in front is asked for',
      PARTIAL,
      { before: (answer, ids) => answer === 2 && ids.splice(6, 2) },
      ['forward 3', 'forward 4', 'back 3'],
      false,
    ],
    ['a part beyond the end', { ...PARTIAL, firstPage: 9 }, {}, ['forward 9'], false],
  ])('is read once, and says nothing of its coverage: %s', (_what, rules, reads, expected, isRepeated) => {
    const reading = begin(rules)

    expect(readAll(reading, upTo(12), reads)).toEqual(expected)

    expect(reading.result).toMatchObject({ coverage: null, repeatedAcrossPages: isRepeated })
    expect(reading.pass).toBe(1)
  })
})

const alwaysNext = ({ page, items }: Answer) => ({ next: items === PER_PAGE ? page + 1 : null })
const nextAlone = (answer: Answer) => ({ ...alwaysNext(answer), total: null })

describe('a list that names a next page behind its last full one, which is empty', () => {
  it.each<[string, number, NonNullable<Reads['before']>, string[], string]>([
    ['is steady', 9, () => {}, ['forward 3', 'forward 4', 'spot 1'], 'steady'],
    ['is steady, of one page', 3, () => {}, ['forward 1', 'forward 2', 'spot 1'], 'steady'],
    [
      'ends there also when it has become shorter',
      30,
      (answer, ids) => answer === 10 && ids.splice(0, 3),
      ['forward 9', 'forward 10', 'rejoin 9', 'rejoin 8', 'forward 10', 'look 5'],
      'repaired',
    ],
  ])('%s', (_what, count, before, expected, coverage) => {
    const reading = begin()
    const ids = upTo(count)

    const asked = readAll(reading, ids, { before, instead: alwaysNext })

    expect(asked.join(', ')).toContain(expected.join(', '))
    expect(reading.pass).toBe(1)
    expect(reading.result).toMatchObject({ coverage })
    for (const id of ids) expect(reading.has(String(id))).toBe(true)
  })

  it('is read once where nothing counts it', () => {
    const reading = begin()

    expect(readAll(reading, upTo(9), { instead: nextAlone }).slice(3)).toEqual(['forward 4', 'rejoin 3'])
  })
})

/** Pages of one item, and after five of none; the last page is always the next one. */
const endless = ({ page }: Answer, number: number) => ({
  ids: number > 5 ? [] : [`${page}`],
  items: number > 5 ? 0 : 1,
  next: page + 1,
  total: null,
  lastPage: page + 1,
})

it('a list without end is given up after a thousand pages without a new item', () => {
  expect(() => readAll(begin(), [], { instead: endless })).toThrow(
    'acme orders: the list does not end: the last 1,000 pages brought nothing new',
  )
})

it.each<[string, (reading: WalkReading, ids: number[]) => unknown]>([
  ['it is interrupted', (reading) => reading.resume()],
  ['the list becomes shorter than the next page', (_reading, ids) => ids.splice(0, 36)],
])(
  'a reading that has asked again for as many pages as there are reads on to the end, also if %s',
  (_what, happens) => {
    const reading = begin({ lastCoverage: 'drifted' })
    const ids = upTo(120)
    const before = (answer: number) => {
      if (answer < 44) ids.shift()
      if (answer === 44) happens(reading, ids)
    }

    const asked = readAll(reading, ids, { before })

    expect(asked.filter((one) => !one.startsWith('forward')).length).toBeGreaterThan(20)
    expect(reading.result).toMatchObject({ coverage: 'drifted', isShort: false })
    expect(ids.slice(-20).filter((id) => !reading.has(String(id)))).toEqual([])
  },
)

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
          const page = answerOf(list.ids, lived.question.page, hasTotal ? {} : { total: null })
          entries.push(lived.take(page, answer))
          if (lived.question && answer % 5 > 0) continue
          const again = await played(entries, rules)
          expect(facts(again)).toEqual(facts(lived))
        }
        expect(lived.result).not.toBeNull()
      }),
      { numRuns: LONG ? 1000 : 100 },
    )
  })

  it.each<[string, (ids: number[]) => unknown, string[]]>([
    ['stands still', () => {}, ['rejoin 2', 'forward 3']],
    ['became longer in front', (ids) => ids.unshift(91, 92, 93, 94), ['rejoin 2', 'forward 3', 'forward 4']],
    ['lost its front', (ids) => ids.splice(0, 6), ['rejoin 2', 'rejoin 1', 'forward 3']],
    ['became shorter than where it was', (ids) => ids.splice(2), ['rejoin 2', 'rejoin 1']],
  ])('goes on behind its last item if the list %s', (_what, meanwhile, expected) => {
    const ids = upTo(30)
    const reading = begin()
    for (const page of [1, 2]) reading.take(answerOf(ids, page), 0)
    meanwhile(ids)
    reading.resume()

    const asked = readAll(reading, ids)

    expect(asked.slice(0, expected.length)).toEqual(expected)
    for (const id of ids) expect(reading.has(String(id))).toBe(true)
  })

  it('begins again if the page ledger is not that of its questions', async () => {
    const reading = begin()
    const entries = [1, 2].map((page) => reading.take(answerOf(upTo(9), page), 0))

    expect((await played(entries))?.question).toMatchObject({ page: 3 })
    expect(await played(entries.map((entry) => ({ ...entry, why: 'look' as const })))).toBeNull()
  })
})
