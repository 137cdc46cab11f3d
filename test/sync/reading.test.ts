import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../src/sync/coverage/question.ts'
import type { ListQuestion, WalkRules } from '../../src/sync/coverage/read-list.ts'
import { type ReplayOptions, replay, WalkReading } from '../../src/sync/reading.ts'
import type { LedgerEntry } from '../../src/sync/store.ts'
import { RULES } from '../helpers/test-mirror.ts'
import { MOVEMENTS, type MovingList } from '../lab/coverage/moving-list.ts'
import { createRandom } from '../simulation/random.ts'

// Which pages a walk asks for, from its answers alone; and that its page ledger is enough to go on from.

const PER_PAGE = 3

/** What a server shows of a list. */
function answerOf(ids: readonly (number | string)[], page: number, changed: Partial<Answer> = {}): Answer {
  const lastPage = Math.max(Math.ceil(ids.length / PER_PAGE), 1)
  const shown = ids.slice((page - 1) * PER_PAGE, page * PER_PAGE).map(String)
  const next = page < lastPage ? page + 1 : null
  return {
    page,
    ids: [...new Set(shown)],
    items: shown.length,
    total: ids.length,
    next,
    lastPage,
    ...changed,
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const shown = ({ why, page }: ListQuestion) => `${why} ${page}`

/** Reads a list to its end. @param before May change the list before this answer. Returns what was asked. */
function readAll(
  reading: WalkReading,
  ids: number[],
  {
    before,
    instead,
  }: {
    before?: (answer: number, ids: number[]) => unknown
    instead?: (answer: Answer, number: number) => Partial<Answer>
  } = {},
): string[] {
  const asked: string[] = []
  while (reading.question) {
    const number = asked.push(shown(reading.question))
    before?.(number, ids)
    const answer = answerOf(ids, reading.question.page)
    reading.take({ ...answer, ...instead?.(answer, number) }, number)
  }
  return asked
}

const begin = (rules: Partial<WalkRules> = {}) => new WalkReading({ ...RULES, ...rules }, 'acme orders')

const noTotal = () => ({ total: null })

describe('a list without totals', () => {
  it('is read once, asked for nothing again, and says nothing of its coverage', () => {
    const reading = begin()

    const asked = readAll(reading, upTo(12), { instead: noTotal })

    expect(asked).toEqual(['forward 1', 'forward 2', 'forward 3', 'forward 4'])
    expect(reading.result).toMatchObject({ coverage: null, passes: 1, repeatedAcrossPages: false })
    expect(reading.result?.totals).toEqual({ first: null, last: null })
  })

  it('that moved remembers that an item came on two pages', () => {
    const reading = begin()

    readAll(reading, upTo(12), {
      instead: noTotal,
      before: (answer, ids) => answer === 3 && ids.unshift(99),
    })

    expect(reading.result).toMatchObject({ coverage: null, repeatedAcrossPages: true })
  })
})

describe('a part of a list', () => {
  it('is read from its first page on, and nothing in front of it is asked for', () => {
    const reading = begin({ kind: 'partial', firstPage: 3 })

    const asked = readAll(reading, upTo(15), { before: (answer, ids) => answer === 2 && ids.splice(6, 2) })

    expect(asked).toEqual(['forward 3', 'forward 4', 'back 3', 'forward 5'])
    expect(reading.result).toMatchObject({ coverage: null, passes: 1 })
  })

  it('beyond the end of the list reads nothing', () => {
    const reading = begin({ kind: 'partial', firstPage: 9 })

    expect(readAll(reading, upTo(4))).toEqual(['forward 9'])
    expect(reading.result).toMatchObject({ kind: 'complete', coverage: null, distinct: 0 })
  })
})

describe('a list whose total is ignored', () => {
  it('is asked for nothing again, whatever its total does', () => {
    const reading = begin({ total: 'ignore' })

    const asked = readAll(reading, upTo(9), { instead: (_answer, number) => ({ total: 50 - number }) })

    expect(asked).toEqual(['forward 1', 'forward 2', 'forward 3'])
    expect(reading.result?.coverage).toBeNull()
  })
})

describe('a list without end', () => {
  it.each<[string, Partial<Answer>]>([
    ['of empty pages', { ids: [], items: 0 }],
    ['of the same items', { ids: ['1', '2', '3'], items: 3 }],
  ])('%s is given up after a thousand pages without a new item', (_what, again) => {
    const reading = begin()
    const instead = ({ page }: Answer, number: number) => ({
      ...(number > 5 ? again : { ids: [`${page}`], items: 1 }),
      next: page + 1,
      total: null,
      lastPage: null,
    })
    let asked = 0

    expect(() => readAll(reading, [], { instead, before: (answer) => (asked = answer) })).toThrow(
      'acme orders: the list does not end: the last 1,000 pages brought nothing new',
    )
    expect(asked).toBeGreaterThanOrEqual(1003)
    expect(asked).toBeLessThanOrEqual(1005)
  })

  it('is no list that ends after a thousand empty pages', () => {
    const reading = begin({ total: 'ignore' })
    const asked = readAll(reading, [1], {
      instead: ({ page }) => ({ next: page < 999 ? page + 1 : null, lastPage: 999 }),
    })

    expect(asked).toHaveLength(999)
  })
})

/** It turns round, and one item takes the place of another. */
function turn(answer: number, ids: number[]): void {
  ids.reverse()
  ids[0] = 1000 + answer
}

describe('a walk after one that drifted', () => {
  it.each([
    [null, 3],
    ['repaired' as const, 3],
    ['drifted' as const, 1],
  ])('reads a list that drifts again once, and others as often as it may: %s', (lastCoverage, passes) => {
    const reading = begin({ lastCoverage })

    readAll(reading, upTo(30), { before: turn })

    expect(reading.result).toMatchObject({ coverage: 'drifted', passes })
  })
})

/** A page ledger in memory, as `readLedger` reads it. */
function ledgerOf(entries: readonly LedgerEntry[]): Pick<ReplayOptions['store'], 'readLedger'> {
  return { readLedger: async (_walk, after) => entries.slice(after, after + 7) }
}

const played = (entries: readonly LedgerEntry[], rules = RULES) =>
  replay(
    { id: 1, rules },
    {
      store: ledgerOf(entries),
      name: 'acme orders',
      yieldToEventLoop: async () => {},
      signal: new AbortController().signal,
    },
  )

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
          const again = await played(entries, rules)
          expect(again?.question).toEqual(lived.question)
          expect(again?.result).toEqual(lived.result)
          expect([again?.items, again?.keyed, again?.beganAnewAt]).toEqual([
            lived.items,
            lived.keyed,
            lived.beganAnewAt,
          ])
        }
        expect(lived.result).not.toBeNull()
      }),
      { numRuns: 200 },
    )
  })

  it.each<[string, (ids: number[]) => unknown, string[]]>([
    ['stands still', () => {}, ['rejoin 2', 'forward 3']],
    ['became longer in front', (ids) => ids.unshift(91, 92, 93, 94), ['rejoin 2', 'rejoin 4', 'forward 5']],
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

  it('begins again if the page ledger is not that of its questions, or of another version', async () => {
    const reading = begin()
    const entries = [1, 2].map((page) => reading.take(answerOf(upTo(9), page), 0))

    expect((await played(entries))?.question).toMatchObject({ page: 3 })
    expect(await played(entries.map((entry) => ({ ...entry, why: 'look' as const })))).toBeNull()
    expect(await played(entries, { ...RULES, version: 0 })).toBeNull()
  })
})
