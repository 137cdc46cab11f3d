import { describe, expect, it } from 'vitest'
import { Listing } from './listing.ts'

const AUTO = { newest: 'auto' } as const

function synced(end: 'first' | 'last', count: number) {
  const list = new Listing(end, count)
  return { list, state: list.walk() }
}

describe('a refresh of a list whose newest end is not known', () => {
  it.each(['first', 'last'] as const)('reads both ends, and learns where the new rows are: %s', (end) => {
    const { list, state } = synced(end, 500)
    list.add(5)

    const { state: after, outcomes } = list.refresh(state, { rules: AUTO })

    expect(outcomes).toEqual(['settled', 'settled'])
    expect(after?.places).toEqual({ first: 0, last: 0, elsewhere: 0, [end]: 5 })
    expect(after?.freshAsOf).toBe(after?.freshness.newestAt)
    expect(list.missing).toEqual([])
  })

  it('claims what both ends have shown, before it is known', () => {
    const { list, state } = synced('first', 500)
    list.add(2)

    const after = list.refresh(state, { rules: AUTO }).state

    expect(after?.freshAsOf).toBe(after?.freshness.newestAt)
    expect(after?.places).toEqual({ first: 2, last: 0, elsewhere: 0 })
  })

  it('does not learn from rows that it meets at the end of a list which it reads whole', () => {
    const { list, state } = synced('last', 500)
    list.add(5)

    const { asked, state: after } = list.refresh(
      { ...state, settledAt: state.freshAsOf - 1 },
      { rules: AUTO },
    )

    expect(new Set(asked).size).toBe(list.lastPage)
    expect(after?.places.first).toBe(0)
  })

  it.each(['first', 'last'] as const)(
    'does not take rows at the other end for new ones at this one, where nearly all are new: %s',
    (end) => {
      const { list, state } = synced(end, 500)
      list.remove(end === 'last' ? 5 : 0, 495)
      list.add(200)

      const { state: after } = list.refresh(state, { rules: AUTO })

      expect(after?.places[end === 'last' ? 'first' : 'last']).toBe(0)
      expect(list.missing).toEqual([])
    },
  )

  it('learns nothing of a list whose rows are all new', () => {
    const { list, state } = synced('last', 500)
    list.remove(0, 500)
    list.add(200)

    expect(list.refresh(state, { rules: AUTO }).state?.places).toMatchObject({ first: 0, last: 0 })
  })

  it('asks for nothing where new items appear anywhere, but once an hour', () => {
    const { list, state } = synced('first', 500)
    for (let index = 0; index < 10; index++) list.insert(200 + index)
    const first = list.refresh(state, { rules: AUTO }).state ?? state

    const second = list.refresh(first, { rules: AUTO })

    expect(first).toMatchObject({ places: { first: 0, last: 0, elsewhere: 10 }, freshAsOf: state.freshAsOf })
    expect(second.asked).toEqual([])
    expect(second.state?.freshness.newestAt).toBeGreaterThan(first.freshness.newestAt)
  })
})

describe('a list that turns round', () => {
  it('is read from the other end in the same refresh, where the total rose by more than was found', () => {
    const { list, state } = synced('last', 500)
    const known = { ...state, places: { first: 20, last: 0, elsewhere: 0 }, bothEndsAt: list.clock }
    list.add(4)

    const { asked, state: after } = list.refresh(known, { rules: AUTO })

    expect(asked.slice(0, 2)).toEqual([1, 21])
    expect(after?.places.last).toBeGreaterThan(3)
    expect(list.missing).toEqual([])
  })
})

describe('a refresh that is killed', () => {
  it('leaves no gap: the next one reads through what it wrote', () => {
    const { list, state } = synced('first', 500)
    list.add(120)
    list.refresh(state, { before: (request) => (request === 3 ? 'killed' : null) })
    list.add(30)
    list.refresh(state, { before: (request) => (request === 2 ? 'killed' : null) })

    const { outcomes } = list.refresh(state)

    expect({ outcomes, missing: list.missing }).toEqual({ outcomes: ['settled'], missing: [] })
  })

  it('leaves none behind the pages that an interrupted walk wrote either', () => {
    const { list, state } = synced('first', 500)
    list.add(120)
    list.read(1)
    list.read(2)

    list.refresh(state)

    expect(list.missing).toEqual([])
  })
})

describe('a hole', () => {
  it('keeps the claim where it is until a full walk that began later is complete', () => {
    const { list, state } = synced('first', 5000)
    list.change(0, 5000)
    const hole = list.refresh(state).state ?? state
    const behind = list.refresh(hole).state ?? hole
    const walked = list.walk(behind)
    const after = list.refresh(walked).state ?? walked

    expect(hole.holeSince).toBe(hole.freshness.newestAt)
    expect(behind).toMatchObject({ freshAsOf: state.freshAsOf, holeSince: hole.freshness.newestAt, holes: 0 })
    expect(walked).toMatchObject({ holeSince: null, freshAsOf: walked.settledAt })
    expect(after.freshAsOf).toBe(after.freshness.newestAt)
  })

  it('at an end that is read once an hour only does not count', () => {
    const { list, state } = synced('first', 3000)
    const known = { ...state, places: { first: 20, last: 0, elsewhere: 0 } }
    list.change(1500, 1500)

    const { outcomes, state: after } = list.refresh(known, { rules: AUTO })

    expect(outcomes).toEqual(['settled', 'hole'])
    expect(after).toMatchObject({ holeSince: null, freshAsOf: after?.freshness.newestAt })
  })
})

describe('the pages that a refresh has read, of which older pages are not read again', () => {
  it.each([
    { end: 'first', asked: [1, 2, 3, 2, 3, 2, 3, 4], pagesRead: 4 },
    // The first request looks for the last page.
    { end: 'last', asked: [20, 23, 22, 23, 22, 23, 22, 21, 20], pagesRead: 4 },
  ] as const)('are counted once, however often they were asked for: $end', ({ end, ...expected }) => {
    const { list, state } = synced(end, 500)
    list.add(60)

    const { asked, state: after } = list.refresh(state, {
      before(request) {
        if (end === 'first' && request % 2 === 1 && request < 7) list.remove(0)
        if (end === 'last' && request % 2 === 1 && request < 7) list.insert(0)
      },
    })

    expect({ asked, pagesRead: after?.shown }).toEqual(expected)
  })
})

/** Rows that come and change at the newest end, a minute, as a refresh knows them after this. */
function newsAfter(move: (list: Listing) => void): number {
  const { list, state } = synced('first', 500)
  move(list)
  return list.refresh(state).state?.freshness.news ?? 0
}

it('a refresh learns from rows that came how often it is worth while, and from changed ones by a sixteenth', () => {
  const none = newsAfter(() => {})

  expect(newsAfter((list) => list.add(2)) / none).toBeCloseTo(1.2)
  expect(newsAfter((list) => list.change(0, 16)) / none).toBeCloseTo(1.1)
})
