import { describe, expect, it } from 'vitest'
import type { PageSource } from '../../src/sync/types.ts'
import { verifyJob, type VerifyOptions, type VerifyResult } from '../../src/sync/verify.ts'
import { jobOf } from '../helpers/jobs.ts'
import { jobOptions, runOnce } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { dump, openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'
import { leaseOf } from '../store/stage.ts'

/** Verifies the orders of acme by hand, or what is said instead. */
function verifyOnce(
  test: TestMirror,
  { source }: { source: PageSource },
  changed: Partial<VerifyOptions> = {},
): Promise<VerifyResult> {
  return verifyJob({ ...jobOptions(test, source), observe: () => {}, ...changed })
}

/** `missing 7`, `different 3 state`: all that is told of a verification, sorted. */
function told({ differences, error }: VerifyResult): string[] {
  if (!differences) return [`${error?.code}: ${error?.message}`]
  return differences.found
    .map(({ kind, key, paths, reject }) => [kind, key ?? reject, ...paths].join(' '))
    .toSorted()
}

/** Items by id; others consist of their id and a state. */
type Values = Record<number, string>

const itemOf = (values: Values) => (id: number) => values[id] ?? `{"id":${id},"state":"open"}`

/** A mirror of this list. */
async function synced(ids: number[], values: Values = {}) {
  const test = openTestMirror()
  await runOnce(test, scriptedList({ ids, item: itemOf(values) }))
  return test
}

/** All that is committed, but for who had a job last, and when each process said that it lives. */
function rowsOf(test: TestMirror) {
  const { sync_jobs: jobs = [], sync_workers: _workers, ...others } = dump(test)
  return { ...others, jobs: jobs.map(({ epoch: _epoch, ...job }) => job) }
}

const WIDE = `{"id":4,"state":"open",${Array.from('abcdefghijkl', (name) => `"${name}":1`).join()}}`
const PAID = '{"id":4,"state":"paid"}'

describe('verify', () => {
  it('finds nothing if list and mirror are equal, and writes nothing', async () => {
    const values = { 7: '{"state":"no key"}' }
    const test = await synced(upTo(7), values)
    const before = rowsOf(test)
    const list = scriptedList({ ids: upTo(7), item: itemOf(values) })

    const result = await verifyOnce(test, list)

    expect(result.differences).toMatchObject({ items: 7, coverage: 'steady', isExtraKnown: true, moved: 0 })
    expect(told(result)).toEqual([])
    // Page 1 a second time: the spot check.
    expect(list.asked).toEqual([1, 2, 3, 1])
    expect(rowsOf(test)).toEqual(before)
  })

  it.each<[string, number[], Values, string[], number[]]>([
    ['an item that the mirror lacks', upTo(8), {}, ['missing 8'], [1, 2, 3, 1, 3]],
    [
      'many of them',
      upTo(40),
      {},
      upTo(33)
        .map((id) => `missing ${id + 7}`)
        .toSorted(),
      [],
    ],
    ['a row that is not listed', [1, 2, 3, 4, 5, 7], {}, ['extra 6'], [1, 2, 1, 1, 2, 1]],
    ['another value', upTo(7), { 4: PAID }, ['different 4 state'], [1, 2, 3, 2, 1]],
    ['more fields than are told', upTo(7), { 4: WIDE }, ['different 4 a b c d e f g h i j'], []],
    ['another value of a field that is ignored', upTo(7), { 4: '{"id":4,"state":"open","seen":1}' }, [], []],
    ['an item without a usable key', upTo(7), { 4: '{"id":null}' }, ['missing key "id" is null'], []],
    ['no items', [], {}, upTo(7).map((id) => `extra ${id}`), []],
  ])('reports a list that shows %s', async (_what, ids, values, expected, asked) => {
    const test = await synced(upTo(7))
    const list = scriptedList({ ids, item: itemOf(values) })

    const result = await verifyOnce(test, list, { job: jobOf({ ignore: ['seen'] }) })

    expect(told(result)).toEqual(expected)
    expect(result.differences?.moved).toBe(0)
    expect(list.asked.slice(0, asked.length)).toEqual(asked)
  })
})

type Change = (ids: number[]) => unknown

/** A list of nine that changes before these answers. */
function moving(changes: Record<number, Change>, values: Values = {}): Script {
  return { ids: upTo(9), item: itemOf(values), before: (count, { ids }) => changes[count]?.(ids) }
}

/** An item comes where the list is read already and another one leaves, before this answer; then it leaves, too, and nothing shows what it was. */
const passingThrough = (answer: number): Record<number, Change> => ({
  [answer]: (ids) => ids.splice(0, 8, 1, 2, 3, 4, 20, 5, 6, 8),
  [answer + 1]: (ids) => ids.splice(4, 1),
})

/** What the items are like in each answer. */
const byAnswer = (valuesIn: (answer: number) => Values): Script => {
  let answer = 0
  return {
    ids: upTo(9),
    before: (count) => {
      answer = count
    },
    item: (id) => itemOf(valuesIn(answer))(id),
  }
}
const until4 = byAnswer((answer) => (answer < 4 ? { 4: PAID } : {}))
const changing = byAnswer((answer) => ({ 4: `{"id":4,"state":${answer}}` }))
const comingAndLeaving = moving({ 3: (ids) => ids.push(10), 5: (ids) => ids.pop() })
const leavingAndComing = moving({ 1: (ids) => ids.pop(), 5: (ids) => ids.push(9) })
const drifting = { ...moving(passingThrough(4), { 1: '{"id":1,"state":"paid"}' }), ids: upTo(8) }
const driftingLater = { ...moving(passingThrough(7)), ids: upTo(8) }
const keyless = { ...moving({}, { 7: '{"id":"","state":"open"}' }), ids: upTo(8) }

describe('verify of a list that moves', () => {
  it.each<[string, Script, string[], moved: number, isExtraKnown?: boolean]>([
    ['of an item that has come, and left before the second look', comingAndLeaving, [], 1],
    ['of one that left, and came back before the second reading', leavingAndComing, [], 1],
    ['of one that left after it was read', moving({ 2: (ids) => ids.shift() }), [], 0],
    ['of one that came where it was read already', moving({ 2: (ids) => ids.unshift(10) }), [], 1],
    ['of one that came and stayed', moving({ 2: (ids) => ids.push(10) }), ['missing 10'], 0],
    ['of one that left unread', moving({ 2: (ids) => ids.pop() }), ['extra 9'], 0],
    ['of one that changes between two looks', until4, [], 1],
    ['of one that is another at each look', changing, [], 1],
    ['but no extra row, if the first reading drifts', drifting, ['different 1 state'], 0, false],
    ['nor if the second one does', driftingLater, [], 0, false],
    ['nor if an item lost its key', keyless, ['missing key "id" is an empty text'], 0, false],
  ])('reports what two looks agree on, %s', async (_what, script, expected, moved, isExtraKnown = true) => {
    const test = await synced(upTo(9))

    const maxPasses = isExtraKnown ? 3 : 1
    const result = await verifyOnce(test, scriptedList(script), { maxPasses })

    expect(told(result)).toEqual(expected)
    expect(result.differences).toMatchObject({ moved, isExtraKnown })
  })
})

describe('verify of a list that cannot be compared', () => {
  it('sends nothing if the mirror has the rows under another key', async () => {
    const test = await synced(upTo(3))
    const list = scriptedList({ ids: upTo(3) })

    const result = await verifyOnce(test, list, { job: jobOf({ key: ['state'] }) })

    expect(told(result)).toEqual([expect.stringMatching(/^CONFIGURATION: .*orders.*key id.*state.*forget/)])
    expect(list.asked).toEqual([])
  })

  it('says that it ends before its own total', async () => {
    const test = await synced(upTo(9))
    const list = scriptedList({ ids: upTo(9), item: itemOf({}), instead: (page) => ({ ...page, total: 12 }) })

    expect(told(await verifyOnce(test, list))).toEqual([
      expect.stringMatching(/^INCOMPLETE: acme orders: .*9 items came of a total of 12/),
    ])
  })

  it('leaves a job to another process that has it, is known to others as a verify, and releases its own', async () => {
    const test = await synced(upTo(3))
    const other = openTestMirror({ file: test.file })
    const lease = await leaseOf(other.store)
    const verifying = () => test.value("SELECT verifying FROM sync_jobs WHERE organization_id LIKE '7f%'")
    let meanwhile: unknown
    const list = scriptedList({
      ids: upTo(3),
      item: itemOf({}),
      before: () => {
        meanwhile = verifying()
      },
    })

    const busy = await verifyOnce(test, list)
    await other.store.release(lease)
    const free = await verifyOnce(test, list)

    expect(told(busy)).toEqual([expect.stringMatching(/^BUSY: /)])
    expect(told(free)).toEqual([])
    expect([meanwhile, verifying()]).toEqual([1, 0])
    expect(test.value("SELECT owner FROM sync_jobs WHERE organization_id LIKE '7f%'")).toBeNull()
  })
})
