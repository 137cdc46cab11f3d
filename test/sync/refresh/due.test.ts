import { describe, expect, it } from 'vitest'
import {
  afterWalked,
  dueLists,
  expectedRequests,
  type KnownList,
  newestWanted,
  type RefreshPace,
  type RefreshPolicy,
  takeOwed,
} from '../../../src/sync/refresh/due.ts'
import { charge, createShareUse, newShare, shareRules, turnOf } from '../../../src/sync/refresh/price.ts'
import { afterFullWalk, knownRates, type RefreshState } from '../../../src/sync/refresh/state.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const NOW = Date.UTC(2026, 10, 20)

const RATE = 0.1
const PRICE = 500
const PACE: RefreshPace = {
  every: 5 * MINUTE,
  turn: 5 * MINUTE,
  walkEvery: DAY,
  newest: 'first',
}

/** A list of 100 pages, which a walk read at the time 0. */
const WALKED: RefreshState = afterFullWalk(null, {
  scope: '',
  startedAt: 0,
  endedAt: 100 * MINUTE,
  lastPage: 100,
  totals: { first: 2500, last: 2500 },
  isSteady: true,
  rowsAdded: { first: 0, last: 0 },
})
const known = knownRates(WALKED, 'first', 0)
const STATE: RefreshState = {
  ...WALKED,
  rates: { ...known, bands: known.bands.map((band) => ({ ...band, rate: RATE })) },
}

/** The rate of the deepest band once the first of its pages that is owed was read, and nothing had changed on it. */
function rateAfter(state: RefreshState, now: number): number {
  let left = state
  for (;;) {
    const owed = takeOwed(left, PACE, PRICE, 6, now)
    const { number, after } = owed.page ?? expect.fail('nothing is owed')
    left = after({ added: 0, changed: 0 })
    if (number > 63) return left.rates?.bands.at(-1)?.rate ?? 0
  }
}

it.each([
  { walked: [], expected: 0.7 },
  { walked: [1, 2], expected: 0.7 },
  { walked: [98, 99, 100], expected: 1 },
  // It looks back at a page.
  { walked: [99, 100, 36], expected: 1 },
  // The next one has begun.
  { walked: [99, 100, 1], expected: 0.7 },
])('a page that a walk has just read says little of its rate: after $walked, $expected of it', (row) => {
  const now = DAY + 100 * MINUTE
  const walked = row.walked.reduce(
    (state, number) => afterWalked(state, PACE, PRICE, { number, found: 0 }, now),
    STATE,
  )

  expect(rateAfter(walked, now) / RATE).toBeCloseTo(row.expected, 1)
})

/** The first older page that is owed a day after the walk. */
function firstOwed(more: Partial<RefreshState> = {}) {
  const { state, page } = takeOwed({ ...STATE, ...more }, PACE, PRICE, 6, DAY + 100 * MINUTE)
  return { state, page: page ?? expect.fail('nothing is owed') }
}

it.each([
  { newestRead: undefined, ago: 10, owed: 7 },
  { newestRead: 6, ago: 10, owed: 7 },
  { newestRead: 7, ago: 10, owed: 15 },
  { newestRead: 7, ago: 1000, owed: 7 },
])(
  'an older page that the newest end has just shown is not owed: $newestRead, $ago minutes ago, $owed is',
  ({ newestRead, ago, owed }) => {
    const startedAt = DAY + (100 - ago) * MINUTE

    expect(firstOwed({ startedAt, ...(newestRead ? { newestRead } : {}) }).page.number).toBe(owed)
  },
)

const rateOf = ({ rates }: RefreshState) => rates?.bands[1]?.rate ?? 0

it('an older page that could not be read is passed over; rows that came and rows that changed count alike', () => {
  const { state, page } = firstOwed()
  const passed = page.after(null)
  const [came, changed] = [page.after({ added: 2, changed: 0 }), page.after({ added: 1, changed: 1 })]

  expect({ ...passed, rates: state.rates }).toEqual(state)
  expect(firstOwed(passed).page.number).toBe(15)
  expect(rateOf(came)).toBeGreaterThan(rateOf(page.after({ added: 0, changed: 0 })))
  expect(rateOf(changed)).toBe(rateOf(came))
  expect([came.older, changed.older]).toEqual([state.older + 2, state.older + 1])
})

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

function shareAt(level: number, price: number) {
  const store = { shares: async () => [], writeShare: async () => true }
  const share = createShareUse(
    store,
    'token',
    () => shareRules(60, 10),
    () => NOW,
  )
  share.note({ budgetKey: 'token', at: NOW, level, logPrice: Math.log(price), version: 1 })
  return share
}

function policyOf(share: RefreshPolicy['share']): RefreshPolicy {
  return {
    every: 5 * MINUTE,
    turn: Number.POSITIVE_INFINITY,
    walkEvery: 1440 * MINUTE,
    newest: 'auto',
    share,
  }
}

function due(
  states: Record<string, RefreshState>,
  {
    level = 0,
    price = 100,
    failed = {},
    read = [],
  }: {
    level?: number
    price?: number
    failed?: Record<string, KnownList<unknown>['failed']>
    read?: string[]
  } = {},
) {
  const policy = policyOf(shareAt(level, price))
  const lists = Object.entries(states).map(([list, state]) => ({
    list,
    policy,
    state,
    failed: failed[list] ?? {},
    isRead: read.includes(list),
  }))
  return dueLists(lists, NOW).map(({ list, reads }) => `${list} ${reads}`)
}

describe('of the lists of one budget', () => {
  it('that one is read first at whose newest end most rows wait, since each of them is wrong for longer', () => {
    const found = due({
      quiet: stateOf(0.1, 90),
      busy: stateOf(60, 6),
      some: stateOf(3, 29),
      rare: stateOf(0.1, 45),
    })

    expect(found).toEqual(['busy newest', 'some newest', 'quiet newest'])
  })

  it('as many newest ends are read as the share has room for, the others when it has', () => {
    const lists = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`l${index}`, stateOf(60, 20 - index / 10)]),
    )

    // Each takes 2 requests: at 0, 2, 4, 6 and 8 of 9.
    expect(due(lists)).toEqual(['l0 newest', 'l1 newest', 'l2 newest', 'l3 newest', 'l4 newest'])
    expect(due(lists, { level: 9.5 })).toEqual([])
  })

  it('one with far more rows goes first, also if it is being walked', () => {
    const lists = { late: stateOf(60, 30), due: stateOf(60, 6) }

    expect(due(lists, { level: 6.5 })).toEqual(['late newest'])
    expect(due(lists, { level: 6.5, read: ['late'] })).toEqual([])
    expect(due(lists, { level: 6, read: ['late'] })).toEqual(['due newest'])
  })

  it.each([
    { level: 6, wanted: 2 },
    { level: 6.5, wanted: 0 },
  ])(
    'one with far fewer rows waits between two pages of its walk, too: level $level, $wanted requests',
    (row) => {
      const share = shareAt(row.level, 100)
      share.noteWaits({ isLate: false, mostUrgent: 1000 })

      expect(newestWanted(share.known(), stateOf(60, 6), policyOf(share), NOW)).toBe(row.wanted)
    },
  )

  it('older pages are read of one at a time, of that one whose were last, and once hardly anything else has to be paid', () => {
    const visited = (list: RefreshState, ago: number) => {
      if (!list.rates) throw new Error('no rates')
      return { ...list, rates: { ...list.rates, bandsAt: NOW - ago * MINUTE } }
    }
    const lists = { one: visited(stateOf(60, 1), 100), other: visited(stateOf(60, 1), 200) }

    expect(due(lists, { price: 1 })).toEqual(['other older'])
    expect(due(lists, { price: 1, level: 1 })).toEqual(['other older'])
    expect(due(lists, { price: 1, level: 1.1 })).toEqual([])
    expect(due({ ...lists, late: stateOf(60, 9) }, { price: 1 })).toEqual(['late newest'])
    expect(due(lists, { price: 1, failed: { other: { older: NOW - 59_000 } } })).toEqual(['one older'])
    expect(due(lists, { price: 1, failed: { other: { newest: NOW - 59_000 } } })).toEqual(['other older'])
  })

  it('a short list has no older pages, and is read whole', () => {
    const short = stateOf(60, 30, { lastPage: 4 })

    expect(due({ short }, { price: 0.1 })).toEqual(['short newest'])
    expect(due({ short: { ...short, startedAt: NOW } }, { price: 0.1 })).toEqual([])
  })

  it('one that could not be begun waits as long as if it were read, unless the clock was set back since', () => {
    const lists = { busy: stateOf(60, 20) }

    expect(due(lists, { failed: { busy: { newest: NOW - 4 * MINUTE } } })).toEqual([])
    expect(due(lists, { failed: { busy: { newest: NOW + 1 } } })).toEqual(['busy newest'])
  })

  it('of none nothing is due', () => {
    expect(due({})).toEqual([])
  })
})

it.each([
  { busy: 20, perMinute: 5 },
  { busy: 100, perMinute: 1 },
  { busy: 5, perMinute: 20 },
])(
  'a list with hardly any news beside $busy with $perMinute new rows a minute is never left out for long',
  ({ busy, perMinute }) => {
    const { longestWait, turn } = playQuiet(busy, perMinute)

    expect(longestWait / turn).toBeLessThan(2.5)
  },
)

/** The longest wait of a quiet list on a new token in two days, in which one page after another is read. */
function playQuiet(busy: number, perMinute: number): { longestWait: number; turn: number } {
  const rules = shareRules(60, 10)
  const turn = turnOf(busy + 1, rules)
  let now = NOW
  const store = { shares: async () => [], writeShare: async () => true }
  const share = createShareUse(
    store,
    'token',
    () => rules,
    () => now,
  )
  const note = (noted: ReturnType<typeof newShare>) =>
    share.note({ ...noted, budgetKey: 'token', version: 1 })
  note(newShare(now))
  const policy: RefreshPolicy = { ...PACE, turn, share }
  const lists = Array.from({ length: busy + 1 }, (_, list): KnownList<number> => {
    const news = 16 * (list === 0 ? 0.001 : perMinute)
    const state = { ...STATE, startedAt: now, rates: { ...known, news, bandsAt: now } }
    return { list, policy, state, failed: {}, isRead: false }
  })
  let longestWait = 0
  for (; now < NOW + 2 * DAY; now += 10_000) {
    for (let next = dueLists(lists, now)[0]; next; next = dueLists(lists, now)[0]) {
      const one = lists[next.list] ?? expect.fail('no such list')
      if (next.list === 0) longestWait = Math.max(longestWait, now - one.state.startedAt)
      note(
        charge(share.known(), rules, next.reads === 'newest' ? expectedRequests(one.state, 'first', now) : 6),
      )
      const { rates = known } = one.state
      one.state =
        next.reads === 'newest'
          ? { ...one.state, startedAt: now, triedAt: now }
          : { ...one.state, rates: { ...rates, bandsAt: now } }
    }
  }
  return { longestWait: Math.max(longestWait, now - (lists[0]?.state.startedAt ?? 0)), turn }
}
