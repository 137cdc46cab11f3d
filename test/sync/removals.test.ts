import { describe, expect, it } from 'vitest'
import { nextPass, startCheckpoint } from '../../src/sync/coverage/state.ts'
import {
  cameAtOnce,
  decideRemovals,
  heldError,
  type RemovalRules,
  whyUntrusted,
} from '../../src/sync/removals.ts'
import type { HeldRemovals, MissingCounts, Removals } from '../../src/sync/store.ts'
import type { Coverage } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'

const STATE = { repeatedAcrossPages: false, passShort: false, passAnswers: 2 }

describe('a complete walk', () => {
  it.each<[string, Coverage | null, Partial<typeof STATE>, number, string | null]>([
    ['that is repaired, though items were on two pages', 'repaired', { repeatedAcrossPages: true }, 0, null],
    ['that drifted', 'drifted', { repeatedAcrossPages: true }, 0, 'what did not come out even'],
    ['without a total', null, {}, 0, null],
    ['without a total, an item on two pages', null, { repeatedAcrossPages: true }, 0, 'an item came on two'],
    ['without a total, that ended too early', null, { passShort: true }, 0, 'there are more'],
    ['that met a new reject', 'steady', {}, 1, '1 item without a usable key'],
  ])('is trusted, or says why not: %s', (_what, coverage, state, newRejects, expected) => {
    const why = coverage === 'drifted' ? 'what did not come out even' : null

    const told = whyUntrusted({ coverage, why, state: { ...STATE, ...state } }, newRejects)

    expect(told).toEqual(expected === null ? null : expect.stringContaining(expected))
  })

  it('remembers over its passes that an item was on two pages of one', () => {
    const first = startCheckpoint(1)
    const repeatedAcrossPages = { ...first, state: { ...first.state, repeatedAcrossPages: true } }

    expect([first, repeatedAcrossPages].map((end) => nextPass(end).state.repeatedAcrossPages)).toEqual([
      false,
      true,
    ])
  })

  it.each([
    ['one answer', 1, { passAnswers: 1 }, true],
    ['two answers', 1, {}, false],
    ['one answer that says that there are more', 1, { passAnswers: 1, passShort: true }, false],
    ['one answer, after a pass over more', 2, { passAnswers: 1 }, false],
  ])('comes in one answer or not: %s', (_what, passes, state, expected) => {
    expect(cameAtOnce({ passes, state: { ...STATE, ...state } })).toBe(expected)
  })
})

const RULES: RemovalRules = { brakePercent: 20, brakeRows: 10, accept: false }
const NOTHING: Removals = 'none'
const REMOVE: Removals = 'remove'

describe('removable rows', () => {
  it.each<[string, Partial<MissingCounts & { listed: number }>, Partial<RemovalRules>, Removals]>([
    ['nothing', { removable: 0 }, {}, NOTHING],
    ['one row', { removable: 1 }, {}, REMOVE],
    ['as many rows as the brake allows', { removable: 10, live: 11 }, {}, REMOVE],
    ['as large a part as the brake allows', { removable: 200, live: 1000 }, {}, REMOVE],
    ['more than both', { removable: 201, live: 1000 }, {}, { hold: 'brake' }],
    ['a part between two whole percents', { removable: 11, live: 55 }, {}, REMOVE],
    ['more than both, accepted', { removable: 201, live: 1000 }, { accept: true }, REMOVE],
    ['any row, with a brake of 0', { removable: 1 }, { brakeRows: 0, brakePercent: 0 }, { hold: 'brake' }],
    ['all rows, with a brake of 100 %', { removable: 1000, live: 1000 }, { brakePercent: 100 }, REMOVE],
    ['one row, of an empty list', { removable: 1, live: 1, listed: 0 }, {}, { hold: 'empty' }],
    ['one row, while another is held', { removable: 1, held: 1 }, {}, { hold: 'earlier' }],
    ['nothing, while a row is held', { removable: 0, held: 1 }, {}, { hold: 'earlier' }],
    ['nothing, while a row is held, accepted', { removable: 0, held: 1 }, { accept: true }, REMOVE],
  ])('are removed or held back: %s', (_what, missing, rules, expected) => {
    const all = { removable: 0, held: 0, live: 1000, listed: 999, ...missing }

    expect(decideRemovals(all, { ...RULES, ...rules })).toEqual(expected)
  })
})

describe('the error about removals held back', () => {
  it.each<[HeldRemovals, string]>([
    [
      { rows: 300, live: 1000, why: 'brake' },
      '300 of 1,000 rows left the list and are held back, since that is more than removals.brakePercent',
    ],
    [
      { rows: 40, live: 40, why: 'empty' },
      '40 of 40 rows left the list and are held back, since the list came without items',
    ],
  ])('names the list, how many of how many, why, and what to type', (held, words) => {
    const job = jobOf({}, { id: '1', name: "o'neill & co" })

    const { code, message } = heldError(job, held, null)

    expect(code).toBe('REMOVALS_HELD')
    expect(message).toContain(`o'neill & co orders: ${words}`)
    expect(message).toContain(
      `admin-mirror sync --org 'o'\\''neill & co' --collection orders --accept-removals`,
    )
  })
})
