import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { End } from '../../../src/sync/refresh/ends.ts'
import type { RefreshState } from '../../../src/sync/refresh/state.ts'
import { Listing } from './listing.ts'

/** `at`: the place in the list, from 0 to 1. */
interface Movement {
  kind: 'add' | 'remove' | 'change' | 'move' | 'late' | 'pages' | 'walk'
  count: number
  at: number
}

interface Round {
  before: Movement[]
  /** What happens in front of each request, one kind each: two kinds hide each other in the total. */
  during: (Movement | null)[]
  killedAt: number | null
}

const movement = (kinds: Movement['kind'][], most: number): fc.Arbitrary<Movement> =>
  fc.record({
    kind: fc.constantFrom(...kinds),
    count: fc.integer({ min: 1, max: most }),
    at: fc.double({ min: 0, max: 0.999, noNaN: true }),
  })

function rounds(moves: Movement['kind'][]): fc.Arbitrary<Round[]> {
  const round = fc.record({
    before: fc.array(movement([...moves, 'late', 'pages', 'walk'], 80), { maxLength: 4 }),
    during: fc.array(fc.option(movement(moves, 30)), { maxLength: 12 }),
    killedAt: fc.option(fc.integer({ min: 1, max: 8 })),
  })
  return fc.array(round, { minLength: 1, maxLength: 8 })
}

/** A list and its mirror, and the items that a claim says nothing of. */
interface Ground {
  list: Listing
  state: RefreshState
  late: Set<number>
  moved: Set<number>
}

function move({ list, moved, late }: Ground, { kind, count, at }: Movement): void {
  const place = Math.floor(at * list.rows.length)
  if (kind === 'add') list.add(count)
  else if (kind === 'remove') list.remove(place, Math.min(count, list.rows.length - 150))
  else if (kind === 'change') list.change(place, count)
  else if (kind === 'move') for (let index = 0; index < count; index++) moved.add(list.moveToEnd(place) ?? -1)
  else if (kind === 'late') late.add(list.insert(place))
}

/** What happens between two refreshes; an interrupted walk has written some pages. */
function prepare(ground: Ground, movements: readonly Movement[]): void {
  const { list } = ground
  for (const happening of movements) {
    const { kind, count, at } = happening
    const from = 1 + Math.floor(at * list.lastPage)
    if (kind === 'walk') ground.state = list.walk(ground.state)
    else if (kind === 'pages') for (let page = from; page < from + count / 10; page++) list.read(page)
    else move(ground, happening)
  }
}

/** Items that should be in the mirror by the refresh's own word. */
function missed(ground: Ground, before: ReadonlySet<number>): number[] {
  const { list, late, moved } = ground
  return list.missing.filter((id) => before.has(id) && !late.has(id) && !moved.has(id))
}

function live(end: End, all: readonly Round[]): void {
  const list = new Listing(end, 400)
  const ground: Ground = { list, state: list.walk(), late: new Set(), moved: new Set() }
  for (const { before, during, killedAt } of all) {
    prepare(ground, before)
    ground.moved.clear()
    const standing = new Set(list.rows.map(({ id }) => id))
    const startedAt = list.clock + 1000
    const { state } = list.refresh(ground.state, {
      before(request) {
        const happening = during[request - 1]
        if (happening) move(ground, happening)
        return request === killedAt ? 'killed' : null
      },
    })
    if (!state) continue
    ground.state = state
    if (state.freshAsOf === startedAt) expect(missed(ground, standing)).toEqual([])
  }
}

/** A seed that fails is printed, and stays a failure. */
const RUNS = { numRuns: Number(process.env.RUNS ?? 500) }

describe('after a refresh that is settled, every item that was added at the newest end before and still stands is known', () => {
  it.each(['first', 'last'] as const)('in a list by creation, whatever is killed: %s', (end) => {
    fc.assert(
      fc.property(rounds(['add', 'remove', 'change', 'late']), (all) => live(end, all)),
      RUNS,
    )
  })

  it('in a list by update, whatever is killed: last', () => {
    fc.assert(
      fc.property(rounds(['add', 'remove', 'move']), (all) => live('last', all)),
      RUNS,
    )
  })

  // A deletion pulls an item to a page already read, and a move, which no total shows, pushes it back behind the reader.
  it('in a list by update, whatever is killed: first, unless items go while it is read', () => {
    fc.assert(
      fc.property(rounds(['add', 'move']), (all) => live('first', all)),
      RUNS,
    )
  })
})

/** Three pages of three new rows in front of known ones, which settle the reading. */
const FRESH = 9
const SETTLING = 26

/** An insertion in front and two deletions, each in front of one of these requests. */
const GAPS = [2, 3, 4, 5, 6]

const DELETED = [...Array.from({ length: FRESH }, (_row, place) => place), FRESH + SETTLING - 2]

/** What a refresh misses that claims to have read the newest end, while this happens. */
function missedWhile([added, ...removed]: number[], places: readonly number[]) {
  const list = new Listing('first', SETTLING, 3)
  const state = list.walk()
  list.add(FRESH)
  const before = new Set(list.rows.map(({ id }) => id))
  const startedAt = list.clock + 1000
  const refreshed = list.refresh(state, {
    before(request) {
      if (request === added) list.add(1)
      for (const [index, place] of places.entries()) if (request === removed[index]) list.remove(place)
    },
  })
  const isClaimed = refreshed.state?.freshAsOf === startedAt
  return { isClaimed, lost: list.missing.filter((id) => before.has(id)) }
}

describe('an insertion in front and two deletions in any gaps between requests', () => {
  it('hide no row from a refresh that claims to have read the newest end', () => {
    const untrue: unknown[] = []
    let claimed = 0
    for (const added of GAPS)
      for (const one of GAPS)
        for (const other of GAPS)
          for (const place of DELETED)
            for (const further of DELETED) {
              const { isClaimed, lost } = missedWhile([added, one, other], [place, further])
              if (isClaimed) claimed++
              if (isClaimed && lost.length > 0) untrue.push({ added, one, other, place, further })
            }
    expect(untrue).toEqual([])
    expect(claimed).toBeGreaterThan(10_000)
  })
})

/** However it grows, the list has no more pages. */
const MOST_PAGES = 40

it('a refresh of a list that moves between all answers asks a few times for each page at most', () => {
  fc.assert(
    fc.property(
      fc.constantFrom<End>('first', 'last'),
      fc.array(movement(['late', 'late', 'remove', 'change', 'move', 'add'], 40), {
        minLength: 1,
        maxLength: 15,
      }),
      (end, during) => {
        const list = new Listing(end, 600)
        const ground: Ground = { list, state: list.walk(), late: new Set(), moved: new Set() }
        const { asked } = list.refresh(ground.state, {
          newest: 'auto',
          before(request) {
            const happening = during[request % during.length]
            // Again and again: everything that comes stays below MOST_PAGES.
            if (happening && list.rows.length < MOST_PAGES * 25 - 40) move(ground, happening)
          },
        })
        expect(asked.length / MOST_PAGES / 2).toBeLessThanOrEqual(3.5)
      },
    ),
    RUNS,
  )
})
