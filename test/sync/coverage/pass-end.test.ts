import { describe, expect, it } from 'vitest'
import { advance } from '../../../src/sync/coverage/advance.ts'
import { forwardTo } from '../../../src/sync/coverage/observe.ts'
import { type CoverageState, startCheckpoint, type WalkRules } from '../../../src/sync/coverage/state.ts'
import { judgePass, type PassRules } from '../../../src/sync/coverage/verdict.ts'
import type { PageMatch } from '../../../src/sync/seen.ts'
import type { Checkpoint, Page } from '../../../src/sync/types.ts'
import { pageOf } from '../../helpers/pages.ts'

const WALK: WalkRules = { firstPage: 1, total: 'check', kind: 'full' }
const RULES: PassRules = { ...WALK, maxPasses: 3 }

/** An answer with this many items, all new. */
function answer(number: number, items: number, { next, lastPage }: Pick<Page, 'next' | 'lastPage'>) {
  const texts = Array.from({ length: items }, (_, index) => `{"id":${number * 100 + index}}`)
  const page = pageOf(texts, { number, next, lastPage, total: null })
  const match: PageMatch = {
    ordinal: 1,
    pass: 1,
    why: 'forward',
    entries: page.items.map((item) => ({ item, id: item.text, reject: '' })),
    newToWalk: items,
    newToPass: items,
    previous: page.items.map(() => null),
    positions: page.items.map((_, position) => ({ segment: number, position })),
    known: null,
  }
  return { page, match }
}

function behind(from: Checkpoint, { page, match }: ReturnType<typeof answer>): Checkpoint {
  return advance(WALK, from, page, match)
}

/** The end of a pass with this state. */
function endOf(state: Partial<CoverageState>, pass = 1): Checkpoint {
  return { pass, nextPage: null, ask: null, state: { ...startCheckpoint(1).state, ...state } }
}

describe('the third answer', () => {
  it.each<[string, number, Pick<Page, 'next' | 'lastPage'>, number | null]>([
    ['is beyond the end: steps back', 0, { next: null, lastPage: 2 }, 2],
    ['has items: ends the list', 1, { next: null, lastPage: 2 }, null],
    ['names a next page: asks for it', 0, { next: 4, lastPage: 2 }, 4],
    ['names no last page: ends the list', 0, { next: null, lastPage: null }, null],
    ['is the last page: ends the list', 0, { next: null, lastPage: 3 }, null],
  ])('%s', (_what, items, paging, next) => {
    const from = { ...startCheckpoint(1), nextPage: 3, ask: forwardTo(3) }

    expect(behind(from, answer(3, items, paging)).ask?.page ?? null).toBe(next)
  })

  it.each<[string, number, Pick<Page, 'next' | 'lastPage'>, boolean]>([
    ['it ends the list before its last page', 1, { next: null, lastPage: 4 }, true],
    ['it is the last page', 1, { next: null, lastPage: 3 }, false],
    ['it names a next page', 1, { next: 4, lastPage: 4 }, false],
    ['it is empty, and not the last page', 0, { next: null, lastPage: 4 }, true],
    ['it names no last page', 1, { next: null, lastPage: null }, false],
  ])('marks the pass as short or not: %s', (_what, items, paging, isShort) => {
    const from = { ...startCheckpoint(1), nextPage: 3, ask: forwardTo(3) }

    expect(behind(from, answer(3, items, paging)).state.passShort).toBe(isShort)
  })
})

describe('a list that becomes shorter and shorter', () => {
  it('is stepped back into, for no more pages than it has', () => {
    let checkpoint: Checkpoint = { ...startCheckpoint(1), nextPage: 90, ask: forwardTo(90) }
    const asked: number[] = []

    while (checkpoint.ask) {
      const { page, why } = checkpoint.ask
      asked.push(page)
      const { page: empty, match } = answer(page, 0, { next: null, lastPage: Math.floor(page / 2) })
      checkpoint = advance(WALK, checkpoint, empty, { ...match, why })
    }

    expect(asked).toEqual([90, 45, 22, 11, 5, 2, 1])
  })
})

describe('a list that grows as fast as it is read', () => {
  it('does not end', () => {
    let checkpoint = startCheckpoint(1)
    const readForward = () => {
      for (let number = 1; number < 5000; number++)
        checkpoint = behind(checkpoint, answer(number, 1, { next: number + 1, lastPage: number + 1 }))
    }

    expect(readForward).toThrow(
      'the list does not end: it had 2 pages at first, and page 1,005 names a next one',
    )
  })
})

describe('the end of a pass', () => {
  it.each<[string, Partial<CoverageState>, string]>([
    ['fewer than the total', { passTotal: 10, passDistinct: 9 }, '9 items came of a total of 10'],
    [
      'items twice',
      { passTotal: 10, passDistinct: 9, passRepeated: 2 },
      '9 items came of a total of 10, 2 of them twice',
    ],
    [
      'another total',
      { passTotal: 10, passDistinct: 9, totalChanged: true },
      '9 items came of a total of 10, and the total changed meanwhile',
    ],
    [
      'no total, and an end too early',
      { passDistinct: 9, passShort: true },
      '9 items came, and the last page says that there are more pages',
    ],
  ])('says why the list is read again: %s', (_what, state, why) => {
    expect(judgePass(endOf(state), 9, RULES)).toEqual({ kind: 'again', why })
  })

  it('is drifted if the sums of the last pass agree, but the list moved', () => {
    const state = { passTotal: 10, passDistinct: 10, passMoved: true, unexplained: 1 }

    expect(judgePass(endOf(state, 3), 11, RULES)).toMatchObject({
      kind: 'complete',
      coverage: 'drifted',
      why: '10 items came of a total of 10',
    })
  })

  it('with equal sums is incomplete if the last page says that there are more', () => {
    const state = { passTotal: 9, passDistinct: 9, passShort: true }

    expect(judgePass(endOf(state, 3), 9, RULES).kind).toBe('incomplete')
  })

  it.each([
    [{ passTotal: 9, passDistinct: 10 }, 'set total: ignore'],
    [{ passTotal: 9, passDistinct: 10, totalChanged: true }, 'changed meanwhile'],
  ])('that is drifted gives advice if the total never changes and is too low: %o', (state, words) => {
    const verdict = judgePass(endOf({ ...state, moved: true, unexplained: 1 }, 3), 10, RULES)

    expect(verdict).toMatchObject({ coverage: 'drifted', why: expect.stringMatching(`${words}$`) })
  })
})
