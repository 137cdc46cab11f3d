import { describe, expect, it } from 'vitest'
import { type Ledger, sightingOf } from '../../src/mirror/placing.ts'
import type { Place, Question } from '../../src/sync/coverage/account.ts'
import { startCheckpoint } from '../../src/sync/coverage/beginning.ts'
import type { SightedItem } from '../../src/sync/types.ts'
import { itemOf } from '../helpers/pages.ts'

/** A pass that read a to e in its first answer, and f to h in its third; x was seen in an earlier pass. */
const SEEN: Record<string, Place & { pass: number }> = Object.fromEntries([
  ...'abcde'.split('').map((mark, position) => [mark, { pass: 2, segment: 11, position }]),
  ...'fgh'.split('').map((mark, position) => [mark, { pass: 2, segment: 13, position }]),
  ['x', { pass: 1, segment: 1, position: 0 }],
])

const PLACES = Object.values(SEEN).filter(({ pass }) => pass === 2)
const isUpTo = (one: Place, other: Place) =>
  one.segment < other.segment || (one.segment === other.segment && one.position <= other.position)

const LEDGER: Ledger = {
  after: ({ segment, position }) =>
    PLACES.find((one) => one.segment === segment && one.position > position)?.position ?? null,
  before: ({ segment, position }) =>
    PLACES.findLast((one) => one.segment === segment && one.position < position)?.position ?? null,
  first: (segment) => PLACES.find((one) => one.segment === segment)?.position ?? null,
  distance: (from, to) => PLACES.filter((one) => !isUpTo(one, from) && isUpTo(one, to)).length,
}

function sightingOn(marks: string, ask: Partial<Question>) {
  const entries: SightedItem[] = marks.split('').map((mark) => ({ item: itemOf(`"${mark}"`), mark, key: [] }))
  const before = marks.split('').map((mark) => SEEN[mark])
  const from = {
    ...startCheckpoint(1),
    pass: 2,
    ask: { why: 'look', page: 1, until: null, before: null, ...ask } satisfies Question,
  }
  return sightingOf(entries, before, from, 20, LEDGER)
}

const at = ({ segment, position }: Place) => `${segment}:${Number(position.toFixed(3))}`

describe('the place of a key', () => {
  it.each<[string, string, Partial<Question>, string[]]>([
    ['is where it is read on', 'dnf', { why: 'forward' }, ['20:0', '20:1', '20:2']],
    ['stays what it was where something is looked for', 'abc', {}, ['11:0', '11:1', '11:2']],
    ['is behind the key before it, when it is found', 'abnc', {}, ['11:0', '11:1', '11:1.5', '11:2']],
    ['leaves room for all that were found there', 'bmnc', {}, ['11:1', '11:1.333', '11:1.667', '11:2']],
    ['is behind the last of an answer', 'enf', {}, ['11:4', '11:4.5', '13:0']],
    [
      'is before the first known key, when nothing known comes before it',
      'mng',
      {},
      ['13:0.333', '13:0.667', '13:1'],
    ],
    ['is before the first of an answer', 'mf', {}, ['13:-0.5', '13:0']],
    ['is not what it was in an earlier pass', 'axb', {}, ['11:0', '11:0.5', '11:1']],
    [
      'is before the page that was stepped back from, when nothing is known',
      'mn',
      { why: 'back', before: 13 },
      ['13:-1.5', '13:-0.5'],
    ],
    [
      'is behind all others, when nothing is known and nothing is named',
      'mn',
      { why: 'overlap' },
      ['20:-2', '20:-1'],
    ],
  ])('%s', (_title, marks, ask, expected) => {
    expect(sightingOn(marks, ask).placed.map(at)).toEqual(expected)
  })

  it('tells new keys of the pass from new keys of the walk', () => {
    expect(sightingOn('axn', {})).toMatchObject({ newToPass: 2, newToWalk: 1 })
  })
})

describe('the distance', () => {
  it.each<[string, string, Place, { entry: number; distance: number } | null]>([
    [
      'counts the keys from behind the last known one',
      'abc',
      { segment: 13, position: 2 },
      { entry: 2, distance: 5 },
    ],
    ['passes over keys that are new', 'abn', { segment: 13, position: 2 }, { entry: 1, distance: 6 }],
    ['passes over keys beyond the place', 'abf', { segment: 11, position: 4 }, { entry: 1, distance: 3 }],
    ['is none up to the place itself', 'de', { segment: 11, position: 4 }, { entry: 1, distance: 0 }],
    [
      'rather begins at a key that stands beside another',
      'abgn',
      { segment: 13, position: 2 },
      { entry: 1, distance: 6 },
    ],
    ['but begins at any, where none does', 'g', { segment: 13, position: 2 }, { entry: 0, distance: 1 }],
    ['begins nowhere where nothing is known', 'mn', { segment: 13, position: 2 }, null],
  ])('%s', (_title, marks, until, expected) => {
    expect(sightingOn(marks, { until }).known).toEqual(expected)
  })
})
