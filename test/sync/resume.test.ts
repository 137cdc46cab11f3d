import { describe, expect, it } from 'vitest'
import { chooseWalk, filtersText, type RecallOptions, recallSeenItems } from '../../src/sync/resume.ts'
import { createSeenItems, type SeenItems } from '../../src/sync/seen.ts'
import type { LedgerEntry, OpenWalk } from '../../src/sync/store.ts'
import type { Filters, WalkPlan } from '../../src/sync/types.ts'
import { jobOf } from '../helpers/jobs.ts'
import { runOnce, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, SYNC, type TestMirror } from '../helpers/test-mirror.ts'

const NOW = 1_000_000_000
const JOB = jobOf({ filters: { state: 'paid' } })

const BACKFILL: WalkPlan = { ...SYNC, origin: 'backfill', resumeWithin: null }
const PARTIAL: WalkPlan = { ...BACKFILL, kind: 'partial', firstPage: 5 }

function open(changed: Partial<OpenWalk> = {}): OpenWalk {
  return {
    id: 1,
    origin: 'sync',
    kind: 'full',
    path: JOB.collection.path,
    filters: '{"state":"paid"}',
    firstPage: 1,
    updatedAt: NOW - 1000,
    ...changed,
  }
}

const FULL_BACKFILL = open({ id: 2, origin: 'backfill' })
const PARTIAL_BACKFILL = open({ id: 3, origin: 'backfill', kind: 'partial', firstPage: 5 })
const OLD = NOW - 86_400_001

describe('the walk that a run resumes', () => {
  it.each<[string, WalkPlan, OpenWalk[], number | null, number[]]>([
    ['none is open', SYNC, [], null, []],
    ["the sync's own", SYNC, [open()], 1, []],
    ['one without progress for exactly resumeWithin', SYNC, [open({ updatedAt: OLD + 1 })], 1, []],
    ['none without progress for longer', SYNC, [open({ updatedAt: OLD })], null, [1]],
    ['none with other filters', SYNC, [open({ filters: '{}' })], null, [1]],
    ['none of another path', SYNC, [open({ path: '/api/v2/orders' })], null, [1]],
    ['the latest of two', SYNC, [open(), open({ id: 4 })], 4, [1]],
    ['none of a backfill', SYNC, [FULL_BACKFILL, PARTIAL_BACKFILL], null, []],
    ['its own beside those of backfills', SYNC, [open(), FULL_BACKFILL, PARTIAL_BACKFILL], 1, []],
    ['a new full backfill', BACKFILL, [open()], null, []],
    ['a full backfill, resumed', BACKFILL, [open(), FULL_BACKFILL], 2, []],
    ['a full backfill, however old', BACKFILL, [open({ ...FULL_BACKFILL, updatedAt: 0 })], 2, []],
    ['a full backfill leaves another backfill alone', BACKFILL, [PARTIAL_BACKFILL], null, []],
    ['a partial one leaves the sync alone', PARTIAL, [open()], null, []],
    ['a partial one, resumed', PARTIAL, [open(), FULL_BACKFILL, PARTIAL_BACKFILL], 3, []],
    ['no full one of the same list', { ...PARTIAL, firstPage: 1 }, [FULL_BACKFILL], null, []],
    ['no partial one of another page', { ...PARTIAL, firstPage: 6 }, [PARTIAL_BACKFILL], null, []],
    [
      'none of other filters',
      PARTIAL,
      [open({ ...PARTIAL_BACKFILL, filters: '{"state":"open"}' })],
      null,
      [],
    ],
    ['none after --restart', { ...BACKFILL, restart: true }, [FULL_BACKFILL], null, [2]],
    [
      'none after --restart, which leaves the others alone',
      { ...PARTIAL, restart: true },
      [open(), FULL_BACKFILL, PARTIAL_BACKFILL],
      null,
      [3],
    ],
  ])('%s', (_what, plan, known, resume, abandon) => {
    expect(chooseWalk(known, plan, JOB, NOW)).toMatchObject({ resume, abandon })
  })

  it.each<[string, WalkPlan, OpenWalk[], number[]]>([
    ['by a full backfill if it is of a sync', BACKFILL, [open(), FULL_BACKFILL, PARTIAL_BACKFILL], [1]],
    ['by no partial backfill', PARTIAL, [open(), FULL_BACKFILL], []],
    ['by no sync', SYNC, [open({ filters: '{}' }), FULL_BACKFILL], []],
  ])('is replaced %s', (_what, plan, known, replace) => {
    expect(chooseWalk(known, plan, JOB, NOW).replace.map(({ id }) => id)).toEqual(replace)
  })
})

describe('the text of filters', () => {
  it.each<[string, Filters, Filters, boolean]>([
    ['in another order', { a: '1', b: '2' }, { b: '2', a: '1' }, true],
    ['with another value', { a: '1' }, { a: '2' }, false],
    ['with a list', { a: ['1', '2'] }, { a: ['1', '2'] }, true],
  ])('is the same for the same list, and no other: %s', (_what, one, other, same) => {
    expect(filtersText(one) === filtersText(other)).toBe(same)
  })
})

const IDS = [...upTo(30), 50, 60].map(String)

/** The positions of the items that the walk has seen. */
function places(seen: SeenItems) {
  return IDS.map((id) => seen.find(id))
}

/** What a process knows that resumes the mirror's first walk. */
async function recall({ store }: TestMirror, changed: Partial<RecallOptions> = {}): Promise<SeenItems> {
  const { signal } = new AbortController()
  return recallSeenItems(
    { id: 1, resumed: true },
    { store, yieldToEventLoop: async () => {}, signal, ...changed },
  )
}

/** A list of ten pages that items leave and join, until its server fails before an answer. */
function movingList(failsBefore: number) {
  return scriptedList({
    ids: upTo(30),
    before: (answer, { ids }) => {
      if (answer === failsBefore) throw new Error('the server broke down')
      if (answer === 3 || answer === 9) ids.shift()
      if (answer === 5) ids.splice(2, 0, 50)
      if (answer === 7) ids.push(ids.shift() ?? 0)
      if (answer === 12) ids.unshift(60)
    },
  })
}

const ANSWERS = upTo(14)

describe('the positions of a walk', () => {
  it('come from answers to every reason, in this test', async () => {
    const test = openTestMirror()

    await runOnce(test, movingList(-1))

    expect(test.rows('SELECT DISTINCT why FROM sync_pages ORDER BY why').map(({ why }) => why)).toEqual(
      expect.arrayContaining(['back', 'forward', 'front', 'look']),
    )
    expect(Number(test.value('SELECT count(*) FROM sync_pages'))).toBeGreaterThan(ANSWERS.length)
  })

  it.each(ANSWERS)('are recalled exactly by the process that resumes after answer %i', async (answer) => {
    const test = openTestMirror()
    const committed: LedgerEntry[] = []
    const { commit } = test.store
    test.store.commit = (lease, page) => {
      if (page.answer) committed.push(page.answer.entry)
      return commit(lease, page)
    }
    await runOnce(test, movingList(answer + 1))
    const seen = createSeenItems(1)
    for (const entry of committed) seen.add(entry)

    const recalled = await recall(openTestMirror({ file: test.file }))

    expect(walks(test)).toMatchObject([{ status: 'open', pages: answer, rows_seen: recalled.items }])
    expect(recalled.answers).toBe(answer)
    expect(places(recalled)).toEqual(places(seen))
  })
})

/** A walk of this many pages with one item each, for another process to resume. */
async function openWalkOf(pages: number): Promise<TestMirror> {
  const test = openTestMirror()
  await runOnce(
    test,
    scriptedList({
      ids: upTo(pages + 1),
      perPage: 1,
      before: (answer) => {
        if (answer > pages) throw new Error('the server broke down')
      },
    }),
  )
  return test
}

describe('a long page ledger', () => {
  it('is read in batches, and the process can work between them', async () => {
    const test = await openWalkOf(1001)
    let turns = 0

    const seen = await recall(test, {
      yieldToEventLoop: async () => {
        turns++
      },
    })

    expect(seen).toMatchObject({ answers: 1001, items: 1001, keyed: 1001 })
    expect(turns).toBe(3)
  })
})
