import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { shareOf } from '../../../helpers/shares.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'
import { claimOf, deeds, live, POLICY } from './live.ts'
import type { Movement, MovementKind, Setting } from './moving-list.ts'

// A list that moves from the first request of the first walk on, walked, refreshed and killed at any answer; whatever
// `sync_status.fresh_as_of` says is compared with the list.

/** The same ones each time; `RUNS=500` lives through others. */
const RUNS = process.env.RUNS ? { numRuns: Number(process.env.RUNS) } : { numRuns: LONG ? 40 : 2, seed: 1 }

const MINUTE = 60_000

interface Case extends Setting {
  removal: MovementKind
}

const BY_CREATION = { byUpdate: false, counts: true, total: 'check', newest: 'auto' } as const

const CASES: Case[] = (['first', 'last'] as const).flatMap((grows): Case[] => [
  { ...BY_CREATION, grows, removal: 'remove' },
  { ...BY_CREATION, grows, removal: 'drop' },
  { ...BY_CREATION, grows, removal: 'clear' },
  { ...BY_CREATION, grows, counts: false, newest: grows, removal: 'remove' },
  { ...BY_CREATION, grows, total: 'ignore', removal: 'remove' },
])

function removed(count: number): Movement {
  return { kind: 'remove', count, at: 0 }
}

const QUIET = { after: 2, before: [], during: [], killedAt: null }

const UNCOUNTED: Setting = { ...BY_CREATION, grows: 'last', total: 'ignore' }

it('takes no row that slid past the first walk for a new one, where the total is not to be counted by', async () => {
  const untrue = await live(UNCOUNTED, [
    { ...QUIET, kind: 'walk', during: [null, removed(3)] },
    { ...QUIET, kind: 'refresh' },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'add', count: 1, at: 0 }] },
  ])
  expect(untrue).toEqual([])
})

it('takes none for a new one after the second walk either, where that has learned nothing else', async () => {
  const untrue = await live(UNCOUNTED, [
    { ...QUIET, kind: 'walk', during: [null, removed(15)] },
    { ...QUIET, kind: 'refresh' },
    { ...QUIET, kind: 'walk' },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'add', count: 1, at: 0 }] },
  ])
  expect(untrue).toEqual([])
})

it('is no claim of the other end, where items at the end that it names taught it', async () => {
  const untrue = await live(UNCOUNTED, [
    { ...QUIET, kind: 'walk' },
    { ...QUIET, kind: 'walk' },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'other', count: 3, at: 0 }] },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'add', count: 1, at: 0 }] },
  ])
  expect(untrue).toEqual([])
})

it('takes back what was claimed of the configured end once a full walk finds new rows at the other one', async () => {
  const test = openTestMirror()
  const list = scriptedList({ ids: upTo(100), perPage: 5 })
  const job = jobOf({ newest: 'first' })
  await runOnce(test, list, { job })
  test.clock.advance(MINUTE)
  await runOnce(test, list, { job, instead: 'newest' })
  list.ids.push(...upTo(120).slice(100))
  test.clock.advance(MINUTE)

  await runOnce(test, list, { job, refresh: { ...POLICY, share: shareOf(test.clock.now) } })
  const walked = claimOf(test)
  test.clock.advance(MINUTE)
  await runOnce(test, list, { job, instead: 'newest' })

  expect(walked).toMatchObject({ newest: null, fresh_as_of: walked.as_of })
  expect(claimOf(test)).toEqual(walked)
})

async function expectTrue(
  setting: Setting,
  between: readonly MovementKind[],
  during = between,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(deeds(between, during), async (history) => {
      expect(await live(setting, history)).toEqual([])
    }),
    RUNS,
  )
}

const NAMES = 'of a list that grows at its $grows page, total: $total, with totals: $counts, newest: $newest'

/** All that may happen between two answers without hiding in the total. */
const INSIDE: readonly MovementKind[] = ['add', 'add', 'add', 'remove', 'drop', 'change', 'empty']
const MIXED: readonly MovementKind[] = [...INSIDE, 'insert', 'other']

/** What is put in further inside shows in the total only. A changed item of a list by update hides that one was removed. */
const MANY_WAYS = (['first', 'last'] as const).flatMap((grows) => [
  { ...BY_CREATION, grows, during: MIXED },
  { ...BY_CREATION, grows, total: 'ignore' as const, during: INSIDE },
  {
    ...BY_CREATION,
    grows,
    byUpdate: true,
    during: grows === 'first' ? (['add', 'change', 'empty'] as const) : INSIDE,
  },
])

describe('fresh_as_of is true', () => {
  it.each(CASES)(`${NAMES}, $removal`, ({ removal, ...setting }) =>
    expectTrue(setting, ['add', 'add', removal]),
  )

  it.each(MANY_WAYS)(`${NAMES}, by update: $byUpdate, and moves in many ways`, ({ during, ...setting }) =>
    expectTrue(setting, MIXED, during),
  )
})
