import { describe, expect, it } from 'vitest'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { LONG } from '../../../helpers/long.ts'
import { pageOf } from '../../../helpers/pages.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { leaseOf, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { createRandom, type Random } from '../../../simulation/random.ts'

// Each seed is a mirror with the independent histories of many items. `REPLAYS=100 vitest run ...` replays
// more seeds.

const SEEDS = Array.from({ length: Number(process.env.REPLAYS ?? (LONG ? 100 : 8)) }, (_, seed) => seed)
const ITEMS = 80
const PER_PAGE = 25
const WALKS = 14
const MINUTE = 60_000

/** README: what was in the mirror at an instant. */
const STATE_AT = `
  SELECT CAST(id AS TEXT) AS id, _json FROM orders_history WHERE _valid_from <= :at AND _valid_to > :at
  UNION ALL
  SELECT CAST(id AS TEXT) AS id, _json FROM orders_raw WHERE _changed_at <= :at
`

/** An item of the list as the server has it; null: it is not listed. */
interface Listed {
  value: number
  /** Its key is sent as a text. */
  isText: boolean
  /** Changes all the time, and is not compared. */
  visits: number
}

/** What the mirror must hold of an item. */
interface Kept extends Listed {
  misses: number
}

function textOf(id: number, { value, isText, visits }: Listed): string {
  return `{"id":${isText ? `"${id}"` : id},"value":${value},"visits":${visits}}`
}

function nextListed(before: Listed | null, random: Random, mayBeText: boolean): Listed | null {
  const isText = mayBeText && random.chance(0.2)
  const visits = random.whole(0, 9)
  if (!before) return random.chance(0.4) ? { value: random.whole(0, 3), isText, visits } : null
  if (random.chance(0.2)) return null
  return random.chance(0.3) ? { value: random.whole(0, 3), isText, visits } : { ...before, visits }
}

/** By the rules: a second walk that misses an item removes it, and ignored fields change nothing. */
function nextKept(before: Kept | null, listed: Listed | null): Kept | null {
  if (!listed) return before && before.misses === 0 ? { ...before, misses: 1 } : null
  const isSame = before?.value === listed.value && before.isText === listed.isText
  return { ...(before && isSame ? before : listed), misses: 0 }
}

/** A list with one second for each answer; its process may die at one of its transactions. */
function sourceOf(test: TestMirror, texts: readonly string[]) {
  const lastPage = Math.max(Math.ceil(texts.length / PER_PAGE), 1)
  return {
    refusal: async () => null,
    limit: () => null,
    close: async () => {},
    async fetchPage(number: number) {
      test.clock.advance(1000)
      const next = number < lastPage ? number + 1 : null
      return pageOf(texts.slice((number - 1) * PER_PAGE, number * PER_PAGE), {
        number,
        next,
        lastPage,
        total: texts.length,
      })
    },
  }
}

/** Rolls back the transaction with this number at its end, and writes nothing afterwards. */
async function withDeathAt<T>(
  { connection }: TestMirror,
  number: number,
  task: () => Promise<T>,
): Promise<T> {
  const { transaction } = connection
  let left = number
  connection.transaction = ((work: () => unknown) =>
    transaction.call(connection, () => {
      const result = work()
      if (left-- <= 0) throw new Error('killed')
      return result
    })) as typeof transaction
  const result = await task()
  connection.transaction = transaction
  return result
}

function keptAfter(before: ReadonlyMap<number, Kept>, list: ReadonlyMap<number, Listed | null>) {
  return new Map(
    [...list].flatMap(([id, listed]) => {
      const next = nextKept(before.get(id) ?? null, listed)
      return next ? [[id, next] as const] : []
    }),
  )
}

function count({ value }: TestMirror, status: string): number {
  return Number(value('SELECT count(*) FROM sync_walks WHERE status = ?', status))
}

interface Life {
  test: TestMirror
  /** What the mirror must hold from a time on, in milliseconds after the start. */
  states: { from: number; until: number; kept: Map<number, Kept> }[]
}

async function live(seed: number, clockGoesBack: boolean): Promise<Life> {
  const random = createRandom(seed)
  const test = openTestMirror()
  const start = test.clock.now()
  const options = {
    job: jobOf({ ignore: ['visits'] }),
    removals: { brakePercent: 100, brakeRows: 0, accept: true },
  }
  const states: Life['states'] = []
  let list = new Map<number, Listed | null>()
  let kept = new Map<number, Kept>()
  let done = 0
  const textsFrom = random.whole(2, WALKS)
  for (let walk = 0; walk < WALKS; walk++) {
    test.clock.advance(clockGoesBack && random.chance(0.3) ? -90 * MINUTE : 60 * MINUTE)
    const last = states.at(-1)
    if (last) last.until = test.clock.now() - start
    const ids = Array.from({ length: ITEMS }, (_, index) => index + 1)
    list = new Map(ids.map((id) => [id, nextListed(list.get(id) ?? null, random, walk >= textsFrom)]))
    const texts = ids.flatMap((id) => {
      const listed = list.get(id)
      return listed ? [textOf(id, listed)] : []
    })
    const source = sourceOf(test, texts)
    // A few processes die, and the next one resumes; numbers beyond the last transaction do no harm.
    for (let deaths = random.whole(0, 2); deaths > 0; deaths--) {
      await withDeathAt(test, random.whole(0, 16), () => runOnce(test, { source }, options))
      // As if the lock of the dead process was free.
      await test.store.release(leaseOf(options.job))
    }
    if (count(test, 'complete') === done || count(test, 'open') > 0) {
      const { error, coverage } = await runOnce(test, { source }, options)
      expect({ error, coverage }).toEqual({ error: null, coverage: 'steady' })
    }
    // After a death behind the end of its walk, another walk follows.
    for (; done < count(test, 'complete'); done++) kept = keptAfter(kept, list)
    const now = test.clock.now() - start
    states.push({ from: now, until: now, kept })
  }
  return { test, states }
}

function stateAt({ connection }: TestMirror, at: string): string[] {
  const rows = connection.prepare(STATE_AT).all({ at }) as { id: string; _json: string }[]
  return rows.map(({ id, _json: json }) => `${id} ${json}`).toSorted((a, b) => (a < b ? -1 : 1))
}

function expected(kept: ReadonlyMap<number, Kept>): string[] {
  return [...kept].map(([id, item]) => `${id} ${textOf(id, item)}`).toSorted((a, b) => (a < b ? -1 : 1))
}

describe('the history', () => {
  it.each(SEEDS)('shows what was in the mirror at any instant between two walks: %i', async (seed) => {
    const { test, states } = await live(seed, false)
    const random = createRandom(seed)

    for (const { from, until, kept } of states) {
      const at = from + random.whole(0, until - from)
      expect(stateAt(test, timeAt(at)), `at ${timeAt(at)}`).toEqual(expected(kept))
    }

    expect(stateAt(test, timeAt(-1))).toEqual([])
    expect(test.value(`SELECT count(*) FROM orders_history WHERE _reason = 'removed'`)).toBeGreaterThan(50)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it.each(SEEDS.slice(0, 4))(
    'has no version that ends before it begins, and no two at once, with any clock: %i',
    async (seed) => {
      const { test, states } = await live(seed, true)

      expect(test.value('SELECT count(*) FROM orders_history WHERE _valid_from > _valid_to')).toBe(0)
      expect(
        test.rows(`
        WITH version AS (
          SELECT CAST(id AS TEXT) AS id, _valid_from AS start, _valid_to AS end FROM orders_history
          UNION ALL
          SELECT CAST(id AS TEXT), _changed_at, '9999' FROM orders_raw
        )
        SELECT * FROM version AS one JOIN version AS other USING (id)
        WHERE one.start < other.start AND other.start < one.end
      `),
      ).toEqual([])
      expect(stateAt(test, '9998')).toEqual(expected(states.at(-1)?.kept ?? new Map()))
    },
  )
})
