import * as fc from 'fast-check'
import { expect, it } from 'vitest'
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
  else if (kind === 'move') for (const id of list.move(place, count)) moved.add(id)
  else if (kind === 'late') for (const id of list.insert(place)) late.add(id)
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

function live(end: End, all: readonly Round[]): void {
  const list = new Listing(end, 400)
  const [late, moved] = [new Set<number>(), new Set<number>()]
  const ground: Ground = { list, state: list.walk(), late, moved }
  for (const { before, during, killedAt } of all) {
    prepare(ground, before)
    moved.clear()
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
    if (state.freshAsOf !== startedAt) continue
    const claimed = list.missing.filter((id) => standing.has(id) && !late.has(id) && !moved.has(id))
    expect(claimed).toEqual([])
  }
}

/** A seed that fails is printed, and stays a failure. */
const RUNS = { numRuns: Number(process.env.RUNS ?? 500) }

it.each<[End, order: string, Movement['kind'][]]>([
  ['first', 'by creation', ['add', 'remove', 'change', 'late']],
  ['last', 'by creation', ['add', 'remove', 'change', 'late']],
  ['last', 'by update', ['add', 'remove', 'move']],
  // Unless items go while it is read: a deletion pulls an item to a page already read, and a move, which no total shows, pushes it back
  // behind the reader.
  ['first', 'by update', ['add', 'move']],
])(
  'after a refresh that is settled, every item that was added at the newest end before and still stands is known, whatever is killed: %s, in a list %s',
  (end, _order, kinds) => {
    fc.assert(
      fc.property(rounds(kinds), (all) => live(end, all)),
      RUNS,
    )
  },
)
