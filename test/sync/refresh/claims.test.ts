import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { End, RefreshRules } from '../../../src/sync/refresh/answer.ts'
import { loadOf, type RefreshPolicy } from '../../../src/sync/refresh/due.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { runOnce } from '../../helpers/run-once.ts'
import { type ScriptedList, scriptedList, upTo } from '../../helpers/scripted-list.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

// A list that moves from the first request of the first walk on, walked, refreshed and killed at any answer; whatever
// `sync_status.fresh_as_of` says is compared with the list.

interface Movement {
  /** `drop`: from the newest end; `clear`: all. */
  kind: 'add' | 'remove' | 'drop' | 'clear'
  count: number
  /** The place in the list, from 0 to 1. */
  at: number
}

interface Run {
  kind: 'walk' | 'refresh' | 'due'
  before: Movement[]
  /** What happens in front of answers. */
  during: (Movement | null)[]
  killedAt: number | null
}

interface Setting extends RefreshRules {
  grows: End
  /** Whether the API says how many items there are. */
  counts: boolean
  removal: 'remove' | 'drop' | 'clear'
}

const MINUTE = 60_000
const POLICY: RefreshPolicy = {
  every: MINUTE,
  share: 100,
  load: () => loadOf([60]),
  walkEvery: 1440 * MINUTE,
  takeTurn: async () => null,
}

const movement = (removal: Setting['removal']): fc.Arbitrary<Movement> =>
  fc.record({
    kind: fc.constantFrom('add', 'add', removal),
    count: fc.integer({ min: 1, max: 15 }),
    at: fc.oneof(
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.double({ min: 0, max: 0.15, noNaN: true }),
      fc.double({ min: 0.85, max: 0.999, noNaN: true }),
    ),
  })

const history = ({ removal }: Setting): fc.Arbitrary<Run[]> => {
  const run = fc.record({
    kind: fc.constantFrom('walk', 'refresh', 'refresh', 'refresh', 'due'),
    before: fc.array(movement(removal), { maxLength: 3 }),
    during: fc.array(fc.option(movement(removal)), { maxLength: 30 }),
    killedAt: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 4 }),
  })
  return fc.array(run, { minLength: 2, maxLength: 9 })
}

const PER_PAGE = 5

/** The list, and when each item came that was put at an end of it. */
interface Ground {
  test: TestMirror
  list: ScriptedList
  addedAt: Map<number, number>
}

function move({ test, list, addedAt }: Ground, { kind, count, at }: Movement, grows: End): void {
  if (kind !== 'add') {
    const most = Math.max(0, Math.min(count, list.ids.length - 40))
    if (kind === 'remove') list.ids.splice(Math.floor(at * list.ids.length), most)
    else if (kind === 'clear') list.ids.splice(0)
    else list.ids.splice(grows === 'first' ? 0 : list.ids.length - most, most)
    return
  }
  for (let index = 0; index < count; index++) {
    const id = 1000 + addedAt.size
    addedAt.set(id, test.clock.now())
    if (grows === 'first') list.ids.unshift(id)
    else list.ids.push(id)
  }
}

function claimOf(test: TestMirror): Record<string, unknown> {
  const sql = 'SELECT as_of, fresh_as_of, newest FROM sync_status WHERE organization_id = ?'
  return test.rows(sql, ACME.id)[0] ?? {}
}

/** What `fresh_as_of` claims and the mirror does not hold. */
function untrue({ test, list, addedAt }: Ground): number[] {
  const status = claimOf(test)
  if (!status.fresh_as_of) return []
  const [asOf = 0, freshAsOf = 0] = [status.as_of, status.fresh_as_of].map((time) => Date.parse(String(time)))
  const known = new Set(test.rows('SELECT id FROM orders').map(({ id }) => id))
  // What full walks miss is for their coverage to say.
  return list.ids.filter((id) => {
    const at = addedAt.get(id)
    return at !== undefined && at >= asOf && at < freshAsOf && !known.has(id)
  })
}

async function live({ grows, newest, total, counts }: Setting, runs: readonly Run[]): Promise<void> {
  const test = openTestMirror()
  let happens: ((answer: number) => void) | null = null
  const list = scriptedList({
    ids: upTo(100),
    perPage: PER_PAGE,
    before: (answer) => happens?.(answer),
    instead: (page) => (counts ? page : { ...page, total: null }),
  })
  const ground: Ground = { test, list, addedAt: new Map() }
  const job = jobOf({ total, newest })
  for (const { kind, before, during, killedAt } of runs) {
    const stop = new AbortController()
    const begins = list.asked.length
    test.clock.advance(2 * MINUTE)
    for (const happening of before) move(ground, happening, grows)
    test.clock.advance(1000)
    happens = (answer) => {
      test.clock.advance(100)
      const happening = during[answer - begins - 1]
      if (happening) move(ground, happening, grows)
      if (answer - begins === killedAt) stop.abort()
    }
    const how = {
      walk: { refresh: POLICY },
      refresh: { instead: 'newest' as const },
      due: { instead: 'due' as const, refresh: POLICY },
    }[kind]
    await runOnce(test, list, { job, signal: stop.signal, ...how })
    expect(untrue(ground)).toEqual([])
  }
  test.close()
}

/** The same ones each time; `RUNS=500` lives through others. */
const RUNS = process.env.RUNS ? { numRuns: Number(process.env.RUNS) } : { numRuns: 8, seed: 1 }

const CASES: Setting[] = (['first', 'last'] as const).flatMap((grows): Setting[] => [
  { grows, total: 'check', counts: true, newest: 'auto', removal: 'remove' },
  { grows, total: 'check', counts: true, newest: 'auto', removal: 'drop' },
  { grows, total: 'check', counts: true, newest: 'auto', removal: 'clear' },
  { grows, total: 'check', counts: false, newest: grows, removal: 'remove' },
  { grows, total: 'ignore', counts: true, newest: 'auto', removal: 'remove' },
])

function removed(count: number): Movement {
  return { kind: 'remove', count, at: 0 }
}

const QUIET = { before: [], during: [], killedAt: null }

it('takes no row that slid past the first walk for a new one, where the total is not to be counted by', () =>
  live({ grows: 'last', total: 'ignore', counts: true, newest: 'auto', removal: 'remove' }, [
    { ...QUIET, kind: 'walk', during: [null, removed(3)] },
    { ...QUIET, kind: 'refresh' },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'add', count: 1, at: 0 }] },
  ]))

it('takes none for a new one after the second walk either, where that has learned nothing else', () =>
  live({ grows: 'last', total: 'ignore', counts: true, newest: 'auto', removal: 'remove' }, [
    { ...QUIET, kind: 'walk', during: [null, removed(15)] },
    { ...QUIET, kind: 'refresh' },
    { ...QUIET, kind: 'walk' },
    { ...QUIET, kind: 'refresh', before: [{ kind: 'add', count: 1, at: 0 }] },
  ]))

it('takes back what was claimed of the configured end once a full walk finds new rows at the other one', async () => {
  const test = openTestMirror()
  const list = scriptedList({ ids: upTo(100), perPage: PER_PAGE })
  const job = jobOf({ newest: 'first' })
  await runOnce(test, list, { job })
  test.clock.advance(MINUTE)
  await runOnce(test, list, { job, instead: 'newest' })
  list.ids.push(...upTo(120).slice(100))
  test.clock.advance(MINUTE)

  await runOnce(test, list, { job, refresh: POLICY })
  const walked = claimOf(test)
  test.clock.advance(MINUTE)
  await runOnce(test, list, { job, instead: 'newest' })

  expect(walked).toMatchObject({ newest: null, fresh_as_of: walked.as_of })
  expect(claimOf(test)).toEqual(walked)
})

describe('fresh_as_of is true', () => {
  it.each(CASES)(
    'of a list that grows at its $grows page, total: $total, with totals: $counts, newest: $newest, $removal',
    async (setting) => {
      await fc.assert(
        fc.asyncProperty(history(setting), (runs) => live(setting, runs)),
        RUNS,
      )
    },
  )
})
