import * as fc from 'fast-check'
import type { RefreshPolicy } from '../../../../src/sync/refresh/due.ts'
import type { End } from '../../../../src/sync/refresh/ends.ts'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { shareOf } from '../../../helpers/shares.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { type Movement, type MovementKind, type MovingList, movingList, type Setting } from './moving-list.ts'

/** What a process does, or several if the one before was killed. */
export interface Deed {
  kind: 'walk' | 'refresh' | 'due'
  /** Minutes since the one before. */
  after: number
  before: Movement[]
  /** What happens in front of answers. */
  during: (Movement | null)[]
  killedAt: number | null
}

const MINUTE = 60_000
const PER_PAGE = 5

/** A share that is never full. */
export const POLICY: Omit<RefreshPolicy, 'share'> = {
  every: MINUTE,
  turn: Number.POSITIVE_INFINITY,
  walkEvery: 1440 * MINUTE,
  newest: 'auto',
  alarm: true,
}

function movement(kinds: readonly MovementKind[]): fc.Arbitrary<Movement> {
  return fc.record({
    kind: fc.constantFrom(...kinds),
    count: fc.integer({ min: 1, max: 15 }),
    at: fc.oneof(
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      fc.double({ min: 0, max: 0.15, noNaN: true }),
      fc.double({ min: 0.85, max: 0.999, noNaN: true }),
    ),
  })
}

/**
 * @param between What may happen between two deeds.
 * @param during What may happen between two answers, one at a time: two of them hide each other in the total.
 */
export function deeds(between: readonly MovementKind[], during = between): fc.Arbitrary<Deed[]> {
  const deed = fc.record({
    kind: fc.constantFrom('walk', 'refresh', 'refresh', 'refresh', 'due'),
    after: fc.constantFrom(2, 2, 2, 70),
    before: fc.array(movement(between), { maxLength: 3 }),
    during: fc.array(fc.option(movement(during)), { maxLength: 30 }),
    killedAt: fc.option(fc.integer({ min: 1, max: 40 }), { freq: 4 }),
  })
  return fc.array(deed, { minLength: 2, maxLength: 9 })
}

export function claimOf(test: TestMirror): Record<string, unknown> {
  const sql = 'SELECT as_of, fresh_as_of, newest FROM sync_status WHERE organization_id = ?'
  return test.rows(sql, ACME.id)[0] ?? {}
}

/**
 * What `fresh_as_of` claims and the mirror does not hold. Whoever takes the wrong end for the newest one has claimed the right one
 * all the same, unless items were put in elsewhere: those may teach another end.
 */
function untrue(test: TestMirror, { ids, addedAt, movedAt, putElsewhere }: MovingList, grows: End): number[] {
  const status = claimOf(test)
  if (!status.fresh_as_of) return []
  const [asOf = 0, freshAsOf = 0] = [status.as_of, status.fresh_as_of].map((time) => Date.parse(String(time)))
  const known = new Set(test.rows('SELECT id FROM orders').map(({ id }) => id))
  // What full walks miss is for their coverage to say.
  return ids.filter((id) => {
    const { at = 0, end } = addedAt.get(id) ?? {}
    const isClaimed = status.newest === null || status.newest === end || (end === grows && !putElsewhere())
    const isMoved = (movedAt.get(id) ?? 0) >= freshAsOf
    return at >= asOf && at < freshAsOf && isClaimed && !isMoved && !known.has(id)
  })
}

/** Lives through a history, and returns what was claimed and not true; nothing if all was. */
export async function live(setting: Setting, history: readonly Deed[]): Promise<number[]> {
  const { newest, total, counts } = setting
  const test = openTestMirror()
  const ids = upTo(100)
  const moving = movingList(setting, ids)
  let happens: ((answer: number) => void) | null = null
  let isEmpty = false
  const list = scriptedList({
    ids,
    perPage: PER_PAGE,
    item: (id) => `{"id":${id},"version":${moving.versions.get(id) ?? 0}}`,
    before: (answer) => happens?.(answer),
    instead(page) {
      const shown = isEmpty ? { ...page, items: [], total: 0, lastPage: 1, next: null } : page
      return counts ? shown : { ...shown, total: null }
    },
  })
  const job = jobOf({ total, newest })
  const policy = { ...POLICY, newest, share: shareOf(test.clock.now) }
  for (const { kind, after, before, during, killedAt } of history) {
    const stop = new AbortController()
    const begins = list.asked.length
    test.clock.advance(after * MINUTE)
    for (const happening of before) moving.move(happening, test.clock.now())
    test.clock.advance(1000)
    happens = (answer) => {
      test.clock.advance(100)
      const happening = during[answer - begins - 1]
      isEmpty = happening?.kind === 'empty'
      if (happening) moving.move(happening, test.clock.now())
      if (answer - begins === killedAt) stop.abort()
    }
    const how = {
      walk: { refresh: policy },
      refresh: { instead: 'newest' as const },
      due: { instead: 'due' as const, refresh: policy },
    }[kind]
    await runOnce(test, list, { job, signal: stop.signal, ...how })
    const missing = untrue(test, moving, setting.grows)
    if (missing.length > 0) return missing
  }
  test.close()
  return []
}
