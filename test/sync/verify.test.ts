import { describe, expect, it } from 'vitest'
import { createCandidates } from '../../src/sync/differences.ts'
import { identifyItems, type StoredItem } from '../../src/sync/items.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { type VerifyOptions, type VerifyResult, verifyJob } from '../../src/sync/verify.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { pageOf } from '../helpers/pages.ts'
import { runOnce } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { dump, leaseOf, openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

/** Verifies the orders of acme by hand, or what is said instead. */
function verifyOnce(
  { store, clock }: TestMirror,
  { source }: { source: PageSource },
  changed: Partial<VerifyOptions> = {},
): Promise<VerifyResult> {
  const { now, sleep } = clock
  const { signal } = new AbortController()
  return verifyJob({
    job: jobOf(),
    source: async () => source,
    store,
    maxPasses: 3,
    waitForOwner: false,
    now,
    sleep,
    yieldToEventLoop: async () => {},
    observe: () => {},
    signal,
    ...changed,
  })
}

/** `missing 7`, `different 3 state`: all that is told of a verification, sorted. */
function told({ differences, error }: VerifyResult): string[] {
  if (!differences) return [`${error?.code}: ${error?.message}`]
  const lines = differences.listed.map(({ kind, key, paths, reject }) =>
    [kind, key ?? reject, ...paths].join(' '),
  )
  return lines.toSorted()
}

/** Items by id; others consist of their id only. */
type Values = Record<number, string>

const itemOf = (values: Values) => (id: number) => values[id] ?? `{"id":${id},"state":"open"}`

const ITEM = itemOf({})

/** A mirror of this list. */
async function synced(ids: number[], values: Values = {}, collection = {}) {
  const test = openTestMirror()
  await runOnce(test, scriptedList({ ids, item: itemOf(values) }), { job: jobOf(collection) })
  return test
}

/** All that is committed, but for who had a job last. */
function rowsOf(test: TestMirror) {
  const { sync_jobs: jobs = [], ...others } = dump(test)
  return { ...others, jobs: jobs.map(({ epoch: _epoch, ...job }) => job) }
}

describe('verify', () => {
  it('finds nothing if list and mirror are equal, and writes nothing', async () => {
    const test = await synced(upTo(7), { 7: '{"state":"no key"}' })
    const before = rowsOf(test)
    const list = scriptedList({ ids: upTo(7), item: itemOf({ 7: '{"state":"no key"}' }) })

    const result = await verifyOnce(test, list)

    expect(result.differences).toMatchObject({ items: 7, coverage: 'steady', isExtraKnown: true, moved: 0 })
    expect(told(result)).toEqual([])
    // Page 1 a second time: the spot check.
    expect(list.asked).toEqual([1, 2, 3, 1])
    expect(rowsOf(test)).toEqual(before)
    const left = "SELECT name FROM temp.sqlite_schema WHERE type = 'table'"
    expect(test.connection.prepare(left).pluck().all()).toEqual([])
  })

  it.each([
    ['an item that the mirror lacks', upTo(8), {}, ['missing 8']],
    ['a row that is not listed', [1, 2, 3, 4, 5, 7], {}, ['extra 6']],
    ['another value', upTo(7), { 4: '{"id":4,"state":"paid"}' }, ['different 4 state']],
    ['an additional field', upTo(7), { 4: '{"id":4,"state":"open","c":{"a":1}}' }, ['different 4 c']],
    ['another value of a field that is ignored', upTo(7), { 4: '{"id":4,"state":"open","seen":1}' }, []],
    ['the same value in another spelling', upTo(7), { 4: '{ "state":"open", "id":4.0 }' }, []],
    ['an item without a usable key', upTo(7), { 4: '{"id":null}' }, ['missing key "id" is null']],
    ['no items', [], {}, upTo(7).map((id) => `extra ${id}`)],
  ])('reports a list that shows %s', async (_, ids, values: Values, expected) => {
    const test = await synced(upTo(7))

    const result = await verifyOnce(test, scriptedList({ ids, item: itemOf(values) }), {
      job: jobOf({ ignore: ['seen'] }),
    })

    expect(told(result)).toEqual(expected)
    expect(result.differences?.moved).toBe(0)
  })

  it('finds the rows even if a key column becomes TEXT meanwhile', async () => {
    const test = await synced(upTo(7))
    const other = openTestMirror({ file: test.file })
    const globex = { job: jobOf({}, GLOBEX) }
    const list = scriptedList({
      ids: upTo(7),
      item: itemOf({}),
      before: (count) =>
        count === 2 ? runOnce(other, scriptedList({ ids: [1], item: () => '{"id":"A1"}' }), globex) : null,
    })

    expect(told(await verifyOnce(test, list))).toEqual([])
  })

  it('lists the first of many differences, and counts all', async () => {
    const test = await synced(upTo(2))

    const { differences } = await verifyOnce(test, scriptedList({ ids: upTo(30), item: itemOf({}) }))

    expect(differences?.counts).toEqual({ missing: 28, extra: 0, different: 0 })
    expect(differences?.listed.map(({ key }) => Number(key))).toEqual(upTo(22).slice(2))
  })

  it.each([
    ['one page of a list that does not move', upTo(9), { 4: '{"id":4}' }, [1, 2, 3, 2, 1]],
    ['the whole list if a row is not listed', [1, 2, 3, 4, 6, 7, 8, 9], {}, [1, 2, 3, 1, 1, 2, 3, 1]],
  ])('asks again for %s', async (_, ids, values: Values, asked) => {
    const test = await synced(upTo(9))
    const list = scriptedList({ ids, item: itemOf(values) })

    const result = await verifyOnce(test, list)

    expect(told(result)).toHaveLength(1)
    expect(list.asked).toEqual(asked)
  })

  it('does not trust a list with an item that lost its key about rows not listed', async () => {
    const test = await synced(upTo(7))
    const list = scriptedList({ ids: upTo(7), item: itemOf({ 7: '{"id":"","state":"open"}' }) })

    const result = await verifyOnce(test, list)

    expect(told(result)).toEqual(['missing key "id" is an empty text'])
    expect(result.differences?.isExtraKnown).toBe(false)
  })
})

describe('verify of a moving list', () => {
  const PAID = '{"id":4,"state":"paid"}'

  it.each<[string, Script, string[], number]>([
    ['changed while it is read', changing({ 4: PAID }, 4), [], 1],
    [
      'come, and left before the second look',
      twice(
        3,
        (ids) => ids.push(10),
        5,
        (ids) => ids.pop(),
      ),
      [],
      1,
    ],
    [
      'left, and come back before the second reading',
      twice(
        1,
        (ids) => ids.pop(),
        5,
        (ids) => ids.push(9),
      ),
      [],
      1,
    ],
    ['left after it was read', at(2, (ids) => ids.shift()), [], 0],
  ])('counts no difference for an item that has %s', async (_, script, expected, moved) => {
    const test = await synced(upTo(9))

    const result = await verifyOnce(test, scriptedList(script))

    expect(told(result)).toEqual(expected)
    expect(result.differences?.moved).toBe(moved)
  })
})

describe('verify of an item listed twice', () => {
  const PAID = '{"id":3,"state":"paid"}'

  it.each([
    ['the same as in the mirror, and then another', [ITEM(3), PAID, PAID], 2, []],
    ['another, and then the same', [PAID, ITEM(3), PAID], 2, []],
    ['another both times', [PAID, PAID, PAID], 1, ['different 3 state']],
  ])('%s', async (_, values, moved, expected) => {
    const test = await synced(upTo(9))
    let answers = 0
    const list = scriptedList({
      ids: upTo(9),
      // Number 20 is added in front, so number 3 is on the next page, too.
      before: (count, { ids }) => {
        answers = count
        if (count === 2) ids.unshift(20)
      },
      item: (id) => (id === 3 ? (values[Math.min(answers, 3) - 1] ?? '') : ITEM(id)),
    })

    const result = await verifyOnce(test, list)

    // Number 20 is not missing: it was added during the reading.
    expect(told(result)).toEqual(expected)
    expect(result.differences?.moved).toBe(moved)
  })
})

describe('verify of a list that changes meanwhile', () => {
  it.each<[string, Script, string[]]>([
    ['reports an item that came and stayed as missing', at(2, (ids) => ids.push(10)), ['missing 10']],
    ['reports a row that left unread as extra', at(2, (ids) => ids.pop()), ['extra 9']],
    ['follows an item to the next page', sliding((ids) => ids.unshift(20, 21, 22)), ['different 4 state']],
  ])('%s', async (_, script, expected) => {
    const test = await synced(upTo(9))

    const result = await verifyOnce(test, scriptedList(script))

    expect(told(result)).toEqual(expect.arrayContaining(expected))
  })
})

/** An item comes where the list is read already and another one leaves, before this answer; then it leaves, too, and nothing shows what it was. */
function passingThrough(answer: number): NonNullable<Script['before']> {
  return (count, { ids }) => {
    if (count === answer) ids.splice(0, 8, 1, 2, 3, 4, 20, 5, 6, 8)
    if (count === answer + 1) ids.splice(4, 1)
  }
}

describe('verify without certainty', () => {
  it('reports no extra row of a drifting list, but the items that are certain', async () => {
    const test = await synced(upTo(9))
    const list = scriptedList({
      ids: upTo(8),
      item: itemOf({ 1: '{"id":1,"state":"paid"}' }),
      before: passingThrough(4),
    })

    const result = await verifyOnce(test, list, { maxPasses: 1 })

    expect(result.differences).toMatchObject({ coverage: 'drifted', isExtraKnown: false })
    expect(told(result)).toEqual(['different 1 state'])
  })

  it('reports no extra row after a steady reading if the second one drifts', async () => {
    const test = await synced(upTo(9))
    const list = scriptedList({
      ids: upTo(8),
      item: ITEM,
      before: passingThrough(7),
    })

    const result = await verifyOnce(test, list, { maxPasses: 1 })

    expect(result.differences).toMatchObject({ coverage: 'steady', isExtraKnown: false })
    expect(told(result)).toEqual([])
  })

  it('sends nothing if the mirror has the rows under another key', async () => {
    const test = await synced(upTo(3))
    const list = scriptedList({ ids: upTo(3) })

    const result = await verifyOnce(test, list, { job: jobOf({ key: ['state'] }) })

    expect(told(result)).toEqual([expect.stringMatching(/^CONFIGURATION: .*orders.*key id.*state.*forget/)])
    expect(list.asked).toEqual([])
  })

  it('reports a list that ends before its own total', async () => {
    const test = await synced(upTo(9))
    const list = scriptedList({ ids: upTo(9), item: ITEM, instead: (page) => ({ ...page, total: 12 }) })

    const result = await verifyOnce(test, list)

    expect(told(result)).toEqual([expect.stringMatching(/^INCOMPLETE: acme orders: .*cannot be compared/)])
  })

  it('leaves a job to another process that has it, is known to others as a verify, and releases its own', async () => {
    const test = await synced(upTo(3))
    const other = openTestMirror({ file: test.file })
    const { lease = leaseOf(jobOf()) } = await other.store.acquire(jobOf())
    let work: unknown
    const list = scriptedList({
      ids: upTo(3),
      item: ITEM,
      before: async () => ({ work } = await other.store.acquire(jobOf())),
    })

    const busy = await verifyOnce(test, list)
    await other.store.release(lease)
    const free = await verifyOnce(test, list)

    expect(busy).toMatchObject({ job: jobOf(), differences: null })
    expect(told(busy)).toEqual([expect.stringMatching(/^BUSY: /)])
    expect(told(free)).toEqual([])
    expect(work).toMatchObject({ isVerify: true })
    expect(test.value("SELECT owner FROM sync_jobs WHERE organization_id LIKE '7f%'")).toBeNull()
  })

  it('says after one page that a list was never synced', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(8) })

    const { differences } = await verifyOnce(test, list)

    expect(differences).toMatchObject({ isNeverSynced: true, items: 8, listed: [] })
    expect(differences?.counts.missing).toBe(8)
    expect(list.asked).toEqual([1])
  })
})

function at(answer: number, change: (ids: number[]) => unknown): Script {
  return {
    ids: upTo(9),
    item: ITEM,
    before: (count, list) => (count === answer ? change(list.ids) : null),
  }
}

function twice(
  first: number,
  one: (ids: number[]) => unknown,
  second: number,
  other: (ids: number[]) => unknown,
): Script {
  return {
    ids: upTo(9),
    item: ITEM,
    before: (count, list) => (count === first ? one(list.ids) : count === second ? other(list.ids) : null),
  }
}

/** A changed item, and a list that slides between the reading and the second look. */
function sliding(change: (ids: number[]) => unknown): Script {
  return { ...at(5, change), item: itemOf({ 4: '{"id":4,"state":"paid"}' }) }
}

/** Lists these values up to an answer, and then the old ones. */
function changing(values: Values, until: number): Script {
  let isOver = false
  return {
    ids: upTo(9),
    item: (id) => (isOver ? ITEM(id) : itemOf(values)(id)),
    before: (count) => {
      isOver = count >= until
    },
  }
}

const FORWARD = { page: 1, isForward: true, isSeen: false }
const OTHER: StoredItem = { state: 'different', text: '{"a":"old"}', times: { firstAt: 1, changedAt: 1 } }

describe('candidates of a comparison', () => {
  it('are kept up to a number of each kind, so that many of one kind hide none of another', () => {
    const candidates = createCandidates(new Set(), 2)
    const items = identifyItems(jobOf(), pageOf([1, 2, 3, 4].map((id) => `{"id":${id}}`)))
    const stored: StoredItem[] = [OTHER, OTHER, OTHER, { state: 'absent' }]

    for (const [index, item] of items.entries()) candidates.read(item, stored[index] ?? OTHER, FORWARD)
    for (const [index, item] of items.entries()) candidates.readAgain(item, stored[index] ?? OTHER, 1)
    candidates.addExtra('9')
    candidates.confirmExtra()

    expect(candidates.differences()).toMatchObject({
      counts: { missing: 1, extra: 1, different: 2 },
      isCut: true,
    })
  })
})
