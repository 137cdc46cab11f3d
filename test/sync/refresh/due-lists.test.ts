import { describe, expect, it } from 'vitest'
import { dueLists, type Tried } from '../../../src/sync/refresh/due-lists.ts'
import { shareRules } from '../../../src/sync/refresh/price.ts'
import type { RefreshPolicy } from '../../../src/sync/refresh/refresher.ts'
import { createShareUse } from '../../../src/sync/refresh/share-use.ts'
import { afterFullWalk, knownRates, type RefreshState } from '../../../src/sync/refresh/state.ts'

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 20)
const RULES = shareRules(60, 10)

const FIRST: RefreshState = afterFullWalk(null, {
  scope: '',
  startedAt: NOW,
  endedAt: NOW,
  lastPage: 40,
  totals: { first: 1000, last: 1000 },
  isSteady: true,
  rowsAdded: { first: 0, last: 1000 },
})

/** A list with so many new rows an hour, whose newest end was read so many minutes ago. */
function stateOf(perHour: number, ago: number, more: Partial<RefreshState> = {}): RefreshState {
  const state = { ...FIRST, places: { first: 20, last: 0, elsewhere: 0 }, ...more }
  const rates = { ...knownRates(state, 'auto', NOW), news: (16 * perHour) / 60 }
  return { ...state, startedAt: NOW - ago * MINUTE, triedAt: 0, rates }
}

function due(
  states: Record<string, RefreshState>,
  {
    level = 0,
    price = 100,
    tried = {},
  }: { level?: number; price?: number; tried?: Record<string, Tried> } = {},
) {
  const share = createShareUse({ shares: async () => [], writeShare: async () => true }, 'token', () => NOW)
  share.note({ scope: 'token', at: NOW, level, logPrice: Math.log(price), version: 1 })
  const policy: RefreshPolicy = {
    every: 5 * MINUTE,
    walkEvery: 1440 * MINUTE,
    newest: 'auto',
    rules: () => RULES,
    share,
  }
  const lists = Object.entries(states).map(([list, state]) => ({
    list,
    policy,
    state,
    tried: tried[list] ?? {},
  }))
  const found = dueLists(lists, share, NOW)
  return {
    due: found.due.map(({ list, reads }) => `${list} ${reads}`),
    minutes: (found.again - NOW) / MINUTE,
    share,
  }
}

describe('of the lists of one budget', () => {
  it('that one is read first which has waited longest for its own time', () => {
    const found = due({ busy: stateOf(60, 6), quiet: stateOf(0.1, 61), rare: stateOf(0.1, 45) })

    expect(found.due).toEqual(['busy newest', 'quiet newest'])
  })

  it('as many newest ends are read as the share has room for, the others when it has', () => {
    const lists = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`l${index}`, stateOf(60, 20 - index)]),
    )

    // Each takes 2 requests: at 0, 2, 4, 6 and 8 of 9.
    expect(due(lists).due).toEqual(['l0 newest', 'l1 newest', 'l2 newest', 'l3 newest', 'l4 newest'])
    const full = due(lists, { level: 9.5 })
    expect(full.due).toEqual([])
    expect(full.minutes).toBeCloseTo(0.5 / RULES.perMinute, 3)
  })

  it('older pages are read of one at a time, of that one whose were last, and once nothing else has to be paid', () => {
    const visited = (list: RefreshState, ago: number) => {
      if (!list.rates) throw new Error('no rates')
      return { ...list, rates: { ...list.rates, bandsAt: NOW - ago * MINUTE } }
    }
    const lists = { one: visited(stateOf(60, 1), 100), other: visited(stateOf(60, 1), 200) }

    expect(due(lists, { price: 1 }).due).toEqual(['other older'])
    expect(due(lists, { price: 1, level: 1 }).due).toEqual([])
    expect(due(lists, { price: 1, level: 1 }).minutes).toBeCloseTo(1 / RULES.perMinute, 3)
    expect(due({ ...lists, late: stateOf(60, 9) }, { price: 1 }).due).toEqual(['late newest'])
    expect(due(lists, { price: 1, tried: { other: { older: NOW - 59_000 } } }).due).toEqual(['one older'])
    expect(due(lists, { price: 1, tried: { other: { newest: NOW - 59_000 } } }).due).toEqual(['other older'])
  })

  it('a short list has no older pages, and is read whole', () => {
    const short = stateOf(60, 30, { lastPage: 4 })

    expect(due({ short }, { price: 0.1 }).due).toEqual(['short newest'])
    expect(due({ short: { ...short, startedAt: NOW } }, { price: 0.1 }).due).toEqual([])
  })

  it('what was tried in vain waits as long as what was read, unless the clock was set back since', () => {
    const lists = { busy: stateOf(60, 20) }

    expect(due(lists, { tried: { busy: { newest: NOW - 4 * MINUTE } } }).due).toEqual([])
    expect(due(lists, { tried: { busy: { newest: NOW + 1 } } }).due).toEqual(['busy newest'])
  })

  it('the price falls more slowly while one of them waits for more than ten minutes', () => {
    const prices = [14, 16].map((ago) => {
      const { share } = due({ busy: stateOf(60, ago) }, { level: 100 })
      return share.known({ ...RULES, perMinute: RULES.perMinute }).logPrice
    })

    expect(prices[0]).toBe(prices[1])
  })

  it('of none nothing is due', () => {
    expect(due({})).toMatchObject({ due: [], minutes: Number.POSITIVE_INFINITY })
  })
})
