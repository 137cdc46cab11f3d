import { expect, it } from 'vitest'
import { itemOf } from '../helpers/pages.ts'
import { hearing, mirroredIds, runOnce, walkOver, walks } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

// The page loop, on a real mirror. Which pages it asks for: coverage.test.ts.

it.each<[string, Script, says: RegExp, why: string, pages: number[]]>([
  [
    'than its total',
    { ids: upTo(7), instead: (page) => ({ ...page, total: 8 }) },
    /acme orders.*7 items came of a total of 8.*total: ignore/,
    '7 items came of a total of 8',
    [1, 2, 3],
  ],
  [
    'than its last page',
    { ids: upTo(3), instead: (page) => ({ ...page, next: null, lastPage: 10, total: null }) },
    /something is wrong with the API/,
    '3 items came, and the last page says that there are more pages',
    [1],
  ],
])(
  'a list that says in every pass that there is more %s is incomplete: its rows are kept, and the walk is abandoned',
  async (_what, script, says, why, pages) => {
    const passes: unknown[] = []
    const observe = hearing({ pass: (event) => passes.push([event.pass, event.why]) })

    const { test, list, result } = await walkOver(script, { observe })

    expect(result).toMatchObject({ coverage: null, error: { code: 'INCOMPLETE' } })
    expect(result.error?.message).toMatch(says)
    expect(passes).toEqual([2, 3].map((pass) => [pass, why]))
    expect(list.asked).toEqual([...pages, ...pages, ...pages])
    expect(mirroredIds(test)).toEqual(script.ids)
    expect(walks(test)).toEqual([expect.objectContaining({ status: 'abandoned', coverage: null, passes: 3 })])
    expect(test.rows('SELECT last_run_status, error_code, as_of FROM sync_status')).toContainEqual({
      last_run_status: 'failed',
      error_code: 'INCOMPLETE',
      as_of: null,
    })
  },
)

const unpaged: Script = {
  ids: upTo(5),
  instead: (page) =>
    page.number === 1
      ? page
      : { number: page.number, items: [], next: null, total: null, lastPage: 1, isUnpaged: true },
}

it('a list without pages has nothing behind its first one, where a backfill may begin; a walk that had pages fails', async () => {
  const plan = {
    origin: 'backfill',
    kind: 'partial',
    firstPage: 2,
    resumeWithin: null,
    restart: false,
  } as const
  const beyond = await walkOver(unpaged, { plan })
  const other = await walkOver(unpaged)

  expect([beyond.result.error, beyond.list.asked]).toEqual([null, [2]])
  expect(other.result.error?.message).toMatch(
    /^acme orders page 2: got a list without pages.*backfill --restart$/,
  )
  expect(mirroredIds(other.test)).toEqual([1, 2, 3])
})

it('a list with items without a usable key is steady, since rejected items count as seen', async () => {
  const { test, result } = await walkOver({
    ids: upTo(5),
    instead: (page) => ({ ...page, items: page.items.with(0, itemOf(`{"page":${page.number}}`)) }),
  })

  expect(result).toMatchObject({ error: null, coverage: 'steady' })
  expect(mirroredIds(test)).toEqual([2, 3, 5])
  expect(walks(test)).toEqual([expect.objectContaining({ rows_seen: 5 })])
})

it('the next page is asked for before each page is written, and none is left at the end', async () => {
  const test = openTestMirror()
  const list = scriptedList({ ids: upTo(18) })
  const asked: number[] = []
  const commit: typeof test.store.commit = (...page) => {
    asked.push(list.asked.length)
    return test.store.commit(...page)
  }

  const result = await runOnce(test, list, { store: { ...test.store, commit } })

  // After the sixth page the spot check.
  expect(asked).toEqual([2, 3, 4, 5, 6, 7, 7])
  expect(result).toMatchObject({ error: null, coverage: 'steady', run: { requests: 7, pages: 7 } })
})
