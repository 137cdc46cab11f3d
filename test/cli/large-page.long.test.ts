import { expect, it } from 'vitest'
import { serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

// A page is worked through without a turn for anything else of the process: it must not be more than that takes a moment.

const MOST_BYTES = 33_554_432
const [MOST_ITEMS, MOST_VALUES] = [MOST_BYTES / 1024, MOST_BYTES / 32]

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const listOf = (count: number, item: (id: number) => string) =>
  `[${Array.from({ length: count }, (_, index) => item(index + 1)).join(',')}]`
const fields = (id: number, count: number) =>
  `{"id":${id}${Array.from({ length: count }, (_, index) => `,"f${index}":1`).join('')}}`

/** The longest time between two turns of the event loop while `task` runs. Milliseconds. */
async function longestGap(task: () => Promise<unknown>): Promise<number> {
  let [last, longest] = [performance.now(), 0]
  const note = () => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }
  const timer = setInterval(note, 10)
  await task()
  note()
  clearInterval(timer)
  return longest
}

it.each([
  ['of many tiny items', listOf(MOST_ITEMS, (id) => `{"id":${id}}`)],
  ['of a few items with many fields', listOf(10, (id) => fields(id, MOST_VALUES / 10 - 10))],
  ['of items that are nested deeply', listOf(MOST_VALUES / 401 - 1, (id) => `{"id":${id},"a":${deep(398)}}`)],
])('a page %s keeps nobody waiting for long', { timeout: 120_000 }, async (_name, body) => {
  const api = await serve(() => ({ body }))
  const workspace = createWorkspace({ baseUrl: api.url, organizations: [organization('acme', 1)] })

  const gap = await longestGap(async () => {
    const { code, stderr } = await workspace.run(['sync'])
    expect(code, stderr).toBe(0)
  })

  // Some two seconds on a machine that has nothing else to do; twice as many items took more than five.
  expect(gap).toBeLessThan(15_000)
})

it.each([
  ['items', listOf(MOST_ITEMS + 1, (id) => `{"id":${id}}`)],
  ['values', listOf(10, (id) => fields(id, MOST_VALUES / 10))],
])('a page of more %s is refused, with words', async (what, body) => {
  const api = await serve(() => ({ body }))
  const workspace = createWorkspace({ baseUrl: api.url, organizations: [organization('acme', 1)] })

  const { code, stderr } = await workspace.run(['sync'])

  expect(code).toBe(1)
  expect(stderr).toMatch(
    new RegExp(`has [\\d,]+ ${what}, too many for api\\.maxResponseBytes \\(33554432 bytes\\)`),
  )
})
