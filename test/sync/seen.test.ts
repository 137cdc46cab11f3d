import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ListPosition, type Question, startCheckpoint, type Why } from '../../src/sync/coverage/state.ts'
import type { ListedItem } from '../../src/sync/items.ts'
import { createSeenItems, ledgerEntry, matchPage, type SeenItems } from '../../src/sync/seen.ts'
import type { LedgerEntry } from '../../src/sync/store.ts'
import type { Checkpoint } from '../../src/sync/types.ts'
import { itemOf, pageOf } from '../helpers/pages.ts'

/** A walk that saw x in its first pass; the second read a to e in its first answer, and f to h in its third. */
function seenItems() {
  const seen = createSeenItems(0)
  const line = { page: 1, total: null, why: 'forward' as const, positions: null }
  seen.add({ ...line, ordinal: 1, pass: 1, ids: ['x'] })
  seen.add({ ...line, ordinal: 11, pass: 2, ids: 'abcde'.split('') })
  seen.add({ ...line, ordinal: 13, pass: 2, ids: 'fgh'.split('') })
  return seen
}

function matchOf(ids: string, ask: Partial<Question>) {
  const entries: ListedItem[] = ids.split('').map((id) => ({ item: itemOf('{}'), id, reject: '' }))
  const from = {
    ...startCheckpoint(1),
    pass: 2,
    ask: { why: 'look', page: 1, until: null, before: null, ...ask } satisfies Question,
  }
  return matchPage(entries, from, seenItems())
}

const shown = ({ segment, position }: ListPosition) => `${segment}:${Number(position.toFixed(3))}`

describe('the position of a key', () => {
  it.each<[string, string, Partial<Question>, string[]]>([
    ['is where a page in list order has it', 'dnf', { why: 'forward' }, ['14:0', '14:1', '14:2']],
    ['stays the same on a page that was asked for again', 'abc', {}, ['11:0', '11:1', '11:2']],
    ['is behind the key before it, if it is found later', 'abnc', {}, ['11:0', '11:1', '11:1.5', '11:2']],
    ['leaves room for all keys found there', 'bmnc', {}, ['11:1', '11:1.333', '11:1.667', '11:2']],
    ['is behind the last key of an answer', 'enf', {}, ['11:4', '11:4.5', '13:0']],
    ['is before the first known key, if none precedes it', 'mng', {}, ['13:0.333', '13:0.667', '13:1']],
    ['is before the first key of an answer', 'mf', {}, ['13:-0.5', '13:0']],
    ['is not what it was in an earlier pass', 'axb', {}, ['11:0', '11:0.5', '11:1']],
    [
      'is before the step back, if no key is known',
      'mn',
      { why: 'back', before: 13 },
      ['13:-1.5', '13:-0.5'],
    ],
    ['is behind all others, if nothing is known', 'mn', { why: 'overlap' }, ['14:-2', '14:-1']],
  ])('%s', (_title, ids, ask, expected) => {
    expect(matchOf(ids, ask).positions.map(shown)).toEqual(expected)
  })

  it('counts keys new to the pass and keys new to the walk', () => {
    expect(matchOf('axn', {})).toMatchObject({ newToPass: 2, newToWalk: 1 })
  })
})

describe('the distance', () => {
  it.each<[string, string, ListPosition, { index: number; distance: number } | null]>([
    ['counts the keys behind the last known', 'abc', { segment: 13, position: 2 }, { index: 2, distance: 5 }],
    ['skips new keys', 'abn', { segment: 13, position: 2 }, { index: 1, distance: 6 }],
    ['skips keys beyond the position', 'abf', { segment: 11, position: 4 }, { index: 1, distance: 3 }],
    ['is 0 up to the position itself', 'de', { segment: 11, position: 4 }, { index: 1, distance: 0 }],
    ['starts at a key with a neighbour', 'abgn', { segment: 13, position: 2 }, { index: 1, distance: 6 }],
    ['or else at any known key', 'g', { segment: 13, position: 2 }, { index: 0, distance: 1 }],
    ['is null if no key is known', 'mn', { segment: 13, position: 2 }, null],
  ])('%s', (_title, ids, until, expected) => {
    expect(matchOf(ids, { until }).known).toEqual(expected)
  })
})

/** An answer of a random walk: its question and its items. */
interface Answered {
  why: Why
  ids: string[]
  /** It starts the next pass. */
  isNextPass: boolean
  /** `until` and `before` of the question, as fractions of the known positions and of the pass's answers. */
  until: number | null
  before: number | null
}

const IDS = Array.from({ length: 40 }, (_, number) => String(number))

const answered: fc.Arbitrary<Answered> = fc.record({
  why: fc.constantFrom<Why>('forward', 'forward', 'forward', 'back', 'look', 'front', 'overlap'),
  ids: fc.uniqueArray(fc.constantFrom(...IDS, '\0reject'), { maxLength: 8 }),
  isNextPass: fc.boolean().chain((one) => (one ? fc.boolean() : fc.constant(false))),
  until: fc.option(fc.double({ min: 0, max: 0.999, noNaN: true })),
  before: fc.option(fc.double({ min: 0, max: 0.999, noNaN: true })),
})

type Model = Pick<SeenItems, 'find' | 'after' | 'before' | 'first' | 'distance' | 'add'>

function isUpTo(one: ListPosition, other: ListPosition): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.position <= other.position)
}

/** The same, by plain lists. */
function createModel(): Model {
  const items = new Map<string, ListPosition & { pass: number }>()
  const positionsIn = (wanted: number) =>
    [...items.values()]
      .flatMap(({ segment, position }) => (segment === wanted ? [position] : []))
      .toSorted((a, b) => a - b)
  return {
    find: (id) => items.get(id),
    after: ({ segment, position }) => positionsIn(segment).find((other) => other > position) ?? null,
    before: ({ segment, position }) => positionsIn(segment).findLast((other) => other < position) ?? null,
    first: (segment) => positionsIn(segment)[0] ?? null,
    distance: (from, to) => [...items.values()].filter((one) => !isUpTo(one, from) && isUpTo(one, to)).length,
    add({ ordinal, pass, ids, positions }) {
      for (const [index, id] of ids.entries()) {
        const at = positions === null ? { segment: ordinal, position: index } : positions[index]
        if (at) items.set(id, { pass, segment: at.segment, position: at.position })
      }
    },
  }
}

const entriesOf = (ids: readonly string[]): ListedItem[] =>
  ids.map((id) => ({ item: itemOf('{}'), id, reject: '' }))

/** The element at this fraction of a list. */
function pick<T>(from: readonly T[], at: number | null): T | null {
  return at === null ? null : (from[Math.floor(at * from.length)] ?? null)
}

/** Plays these answers to a walk, and passes on each line of its ledger before it is added. */
function walkThrough(
  answers: readonly Answered[],
  seen: SeenItems,
  hear: (entry: LedgerEntry) => void,
): void {
  let pass = 1
  let segments: number[] = []
  for (const { why, ids, isNextPass, until, before } of answers) {
    if (isNextPass) {
      pass++
      segments = []
    }
    const places = IDS.map((id) => seen.find(id)).filter((place) => place?.pass === pass)
    const ask = { why, page: 1, until: pick(places, until) ?? null, before: pick(segments, before) }
    const from: Checkpoint = { ...startCheckpoint(1), pass, ask }
    const match = matchPage(entriesOf(ids), from, seen)
    const entry = ledgerEntry(pageOf([]), match)
    hear(entry)
    seen.add(entry)
    segments.push(entry.ordinal)
  }
}

describe('what a walk has seen', () => {
  it('agrees with plain lists, after any answers', () => {
    fc.assert(
      fc.property(fc.array(answered, { maxLength: 25 }), (answers) => {
        const seen = createSeenItems(1)
        const model = createModel()
        walkThrough(answers, seen, (entry) => {
          model.add(entry)
        })
        const places = IDS.map((id) => model.find(id))
        const known = places.filter((place) => place !== undefined)

        expect(IDS.map((id) => seen.find(id))).toEqual(places)
        for (const place of known) {
          expect(seen.after(place)).toBe(model.after(place))
          expect(seen.before(place)).toBe(model.before(place))
          expect(seen.first(place.segment)).toBe(model.first(place.segment))
          for (const to of known)
            if (to.segment > place.segment || (to.segment === place.segment && to.position >= place.position))
              expect(seen.distance(place, to)).toBe(model.distance(place, to))
        }
      }),
      { numRuns: 500 },
    )
  })
})
