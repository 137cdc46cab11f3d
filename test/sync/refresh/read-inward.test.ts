import { describe, expect, it } from 'vitest'
import { Listing } from './listing.ts'

const ENDS = ['first', 'last'] as const

function synced(end: (typeof ENDS)[number], count: number) {
  const list = new Listing(end, count)
  return { list, state: list.walk() }
}

describe('the requests that new rows cost', () => {
  it.each([
    { added: 0, first: 1, last: 1 },
    { added: 1, first: 2, last: 3 },
    { added: 10, first: 2, last: 3 },
    { added: 25, first: 2, last: 3 },
    { added: 100, first: 5, last: 6 },
    { added: 500, first: 21, last: 22 },
    { added: 2500, first: 101, last: 102 },
  ])('$added new rows', ({ added, ...expected }) => {
    for (const end of ENDS) {
      const { list, state } = synced(end, 5000)
      list.add(added)

      const { asked, outcomes } = list.refresh(state)

      expect({ asked: asked.length, outcomes, missing: list.missing }).toEqual({
        asked: expected[end],
        outcomes: ['settled'],
        missing: [],
      })
    }
  })
})

describe('the search for the last page', () => {
  it('takes the remembered page where it is still the last one', () => {
    const { list, state } = synced('last', 490)
    list.add(5)

    expect(list.refresh(state).asked).toEqual([20, 19])
  })

  it('goes back where the list became shorter', () => {
    const { list, state } = synced('last', 500)
    list.remove(0, 60)

    expect(list.refresh(state).asked).toEqual([20, 18, 17])
  })

  it('goes to the end of a longer list, and asks the remembered page again when its turn comes', () => {
    const { list, state } = synced('last', 500)
    list.add(40)

    expect(list.refresh(state).asked).toEqual([20, 22, 21, 20])
  })

  it('does not chase a list that grows while it is read, but looks whether anything was put in further inside', () => {
    const { list, state } = synced('last', 500)
    list.add(40)
    const grow = () => {
      list.add(25)
    }

    expect(list.refresh(state, { before: grow }).asked).toEqual([20, 23, 24, 23, 24, 22, 23, 21, 22, 20, 21])
  })

  it('finds what moved from the remembered page while the pages behind it were read', () => {
    const { list, state } = synced('last', 500)
    list.add(60)
    const refreshed = list.refresh(state, {
      before(request) {
        if (request !== 2) return
        list.remove(0, 20)
        list.add(20)
      },
    })

    expect(refreshed.outcomes).toEqual(['settled'])
    expect(list.missing.length).toBe(0)
  })

  it.each([
    { added: 60, removed: 0, asked: [20, 21, 22, 23, 24, 23, 22, 21, 20] },
    { added: 0, removed: 60, asked: [20, 19, 18, 17] },
  ])('follows the next pages where none names the last one: $added came, $removed went', (moved) => {
    const { list, state } = synced('last', 500)
    list.add(moved.added)
    list.remove(0, moved.removed)

    const { asked, outcomes } = list.refresh(state, { spoil: (answer) => ({ ...answer, lastPage: null }) })

    expect({ asked: asked.slice(0, moved.asked.length), outcomes, missing: list.missing }).toEqual({
      asked: asked.slice(0, asked.length),
      outcomes: ['settled'],
      missing: [],
    })
  })
})

describe('an item that is deleted behind the reading', () => {
  it('is followed by a step back to the page before, which holds what slid out of the next one', () => {
    const { list, state } = synced('first', 500)
    const [oldest] = list.add(51)
    const { asked } = list.refresh(state, {
      before(request) {
        if (request === 3) list.remove(0)
      },
    })

    expect(asked.slice(0, 4)).toEqual([1, 2, 3, 2])
    expect(list.known.has(oldest ?? -1)).toBe(true)
    expect(list.missing).toEqual([])
  })

  it('is followed as many pages back as it takes to meet a known item', () => {
    const { list, state } = synced('first', 500)
    list.add(100)
    const { asked } = list.refresh(state, {
      before(request) {
        if (request === 4) list.remove(0, 30)
      },
    })

    expect(asked.slice(0, 6)).toEqual([1, 2, 3, 4, 3, 2])
    expect(list.missing).toEqual([])
  })
})

describe('an item that is put in further inside, from the last page inwards', () => {
  it.each([
    { inside: 1, asked: [20, 23, 22, 23, 22, 21] },
    { inside: 30, asked: [20, 23, 22, 23, 24, 23, 22, 21] },
  ])('is followed by a step back to the pages before, which hold what it pushed there: $inside', (pushed) => {
    const { list, state } = synced('last', 500)
    list.add(60)
    const { asked, outcomes } = list.refresh(state, {
      before(request) {
        if (request === 3) for (let count = 0; count < pushed.inside; count++) list.insert(0)
      },
    })

    expect(asked.slice(0, pushed.asked.length)).toEqual(pushed.asked)
    expect(outcomes).toEqual(['settled'])
    expect(list.missing.every((id) => id >= 560)).toBe(true)
  })

  it('is followed to a page that came behind the last one', () => {
    const { list, state } = synced('last', 400)
    list.add(24)
    const { asked } = list.refresh(state, {
      before(request) {
        if (request < 3) list.insert(0)
      },
    })

    expect(asked.slice(0, 4)).toEqual([16, 17, 18, 17])
    expect(list.missing.every((id) => id >= 424)).toBe(true)
  })

  it('is followed again where a deletion pulled it back meanwhile', () => {
    const { list, state } = synced('last', 400)
    list.add(26)
    const { asked } = list.refresh(state, {
      before(request) {
        if (request === 3) list.insert(0)
        if (request === 4) list.remove(0)
      },
    })

    expect(asked.slice(0, 5)).toEqual([16, 18, 17, 18, 17])
    expect(list.missing).toEqual([])
  })

  it('costs no request where only old news was pushed', () => {
    const { list, state } = synced('last', 510)
    list.add(10)
    const { asked } = list.refresh(state, {
      before(request) {
        if (request === 2) list.insert(0)
      },
    })

    expect(asked).toEqual([21, 20])
  })
})

describe('a list by update', () => {
  it.each(ENDS)('is read through its changed rows, among which new ones stand: %s', (end) => {
    const { list, state } = synced(end, 2000)
    list.add(3)
    for (let moved = 0; moved < 60; moved++) list.moveToEnd(end === 'first' ? 1000 : 500)

    const { outcomes } = list.refresh(state)

    expect({ outcomes, missing: list.missing }).toEqual({ outcomes: ['settled'], missing: [] })
  })
})

describe('changed rows of a list by creation', () => {
  it('do not prolong the reading behind the first row that did not change', () => {
    const { list, state } = synced('first', 2000)
    list.change(1, 300)

    expect(list.refresh(state).asked).toEqual([1])
  })
})

describe('a reading that meets changed rows only', () => {
  it.each(ENDS)('stops after a thousand, and moves its checkpoint on: %s', (end) => {
    const { list, state } = synced(end, 5000)
    list.change(0, 5000)

    const first = list.refresh(state)
    list.change(0, 5000)
    const second = list.refresh(first.state ?? state)

    expect([first.asked.length, second.asked.length]).toEqual([40, 40])
    expect([first.outcomes, second.outcomes]).toEqual([['hole'], ['hole']])
    expect(first.state?.settledAt).toBeGreaterThan(state.settledAt)
    expect(first.state?.freshAsOf).toBe(state.freshAsOf)
    expect(second.state?.holes).toBe(2)
  })
})

describe('a list without a total', () => {
  it('has no step back', () => {
    const { list, state } = synced('first', 500)
    list.add(60)
    const { asked } = list.refresh(state, {
      rules: { total: 'ignore' },
      before(request) {
        if (request === 3) list.remove(0)
      },
    })

    expect(asked.slice(0, 4)).toEqual([1, 2, 3, 4])
  })
})

describe('a list that ends before it should', () => {
  it('settles nothing by an empty first page', () => {
    const { list, state } = synced('first', 500)
    list.remove(0, 500)

    const refreshed = list.refresh(state)

    expect(refreshed.outcomes).toEqual(['unsettled'])
    expect(refreshed.state).toMatchObject({ settledAt: state.settledAt, freshAsOf: state.freshAsOf })
  })

  it.each([
    { total: 20, outcome: 'settled' },
    { total: 500, outcome: 'unsettled' },
  ])('settles as much as its total says: $total', ({ total, outcome }) => {
    const { list, state } = synced('first', 500)
    list.remove(20, 480)

    const { outcomes } = list.refresh(state, { spoil: (answer) => ({ ...answer, total }) })

    expect(outcomes).toEqual([outcome])
  })

  const EMPTY = { items: [], total: 0, next: null, lastPage: 1 }

  it.each([
    { end: 'first', total: 'check', at: 1, outcome: 'settled' },
    { end: 'first', total: 'check', at: 2, outcome: 'settled' },
    { end: 'first', total: 'ignore', at: 1, outcome: 'settled' },
    { end: 'first', total: 'ignore', at: 2, outcome: 'unsettled' },
    { end: 'last', total: 'check', at: 1, outcome: 'settled' },
    { end: 'last', total: 'check', at: 2, outcome: 'settled' },
    { end: 'last', total: 'ignore', at: 1, outcome: 'settled' },
  ] as const)(
    'is not taken for a short one where one answer is empty by mistake: $end, total: $total, answer $at',
    ({ end, total, at, outcome }) => {
      const { list, state } = synced(end, 500)
      list.add(80)
      let answers = 0

      const { state: after, outcomes } = list.refresh(state, {
        rules: { total },
        spoil: (answer) => (++answers === at ? { ...answer, ...EMPTY } : answer),
      })

      expect(outcomes).toEqual([outcome])
      if (outcome === 'settled') expect(list.missing).toEqual([])
      else expect(after?.freshAsOf).toBe(state.freshAsOf)
      expect(after?.lastPage).toBeGreaterThan(4)
    },
  )

  it.each((['check', 'ignore'] as const).flatMap((total) => [1, 2, 3, 4].map((at) => ({ total, at }))))(
    'is read from its end again where a page is empty by mistake: total: $total, answer $at',
    ({ total, at }) => {
      const { list, state } = synced('last', 500)
      list.add(60)
      let answers = 0

      const { asked, outcomes } = list.refresh(state, {
        rules: { total },
        spoil: (answer) => (++answers === at ? { ...answer, ...EMPTY } : answer),
      })

      expect(outcomes).toEqual(['settled'])
      expect(asked.slice(at)).toContain(asked[at - 1])
    },
  )

  it('is read from its new end where it became much shorter meanwhile', () => {
    const { list, state } = synced('last', 500)
    list.add(60)
    const { asked, outcomes } = list.refresh(state, {
      before(request) {
        if (request === 3) list.remove(0, 400)
      },
    })

    expect({ asked, outcomes }).toEqual({ asked: [20, 23, 22, 7, 6, 5, 4], outcomes: ['settled'] })
  })

  it('is walked whole from then on where it is empty twice', () => {
    const { list, state } = synced('first', 500)

    const { asked, state: after } = list.refresh(state, { spoil: (answer) => ({ ...answer, ...EMPTY }) })

    expect(asked).toEqual([1, 1])
    expect(after?.lastPage).toBe(1)
  })

  it('is not read for ever where its pages are empty', () => {
    const { list, state } = synced('first', 500)
    const empty = { items: [], next: 2, lastPage: null }

    const { asked, outcomes } = list.refresh(state, { spoil: (answer) => ({ ...answer, ...empty }) })

    expect({ asked: asked.length, outcomes }).toEqual({ asked: 40, outcomes: ['hole'] })
  })
})

describe('items without a usable key', () => {
  it('end no block and are no news', () => {
    const { list, state } = synced('first', 500)
    const { asked } = list.refresh(state, {
      spoil: (answer) => ({ ...answer, items: answer.items.map((row) => ({ ...row, seen: null })) }),
    })

    expect(asked.length).toBe(20)
  })
})
