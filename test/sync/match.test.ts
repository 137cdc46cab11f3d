import { describe, expect, it } from 'vitest'
import { type ListPosition, type Question, startCheckpoint } from '../../src/sync/coverage/state.ts'
import type { ListedItem } from '../../src/sync/items.ts'
import { matchPage } from '../../src/sync/match.ts'
import { createSeenItems } from '../../src/sync/seen.ts'
import { itemOf } from '../helpers/pages.ts'

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
  const items: ListedItem[] = ids.split('').map((id) => ({ item: itemOf('{}'), id, reject: '' }))
  const from = {
    ...startCheckpoint(1),
    pass: 2,
    ask: { why: 'look', page: 1, until: null, before: null, ...ask } satisfies Question,
  }
  return matchPage(items, from, seenItems())
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
