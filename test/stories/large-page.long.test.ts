import { expect, it } from 'vitest'
import { createScene } from '../helpers/scene.ts'

// A page is worked through without a turn for anything else of the process: so much is taken, some two seconds on an idle machine, and no more.

const MOST_BYTES = 33_554_432
const [MOST_ITEMS, MOST_VALUES] = [MOST_BYTES / 1024, MOST_BYTES / 32]

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
const listOf = (count: number, item: (id: number) => string) =>
  `[${Array.from({ length: count }, (_, index) => item(index + 1)).join(',')}]`
const fields = (id: number, count: number) =>
  `{"id":${id}${Array.from({ length: count }, (_, index) => `,"f${index}":1`).join('')}}`

it.each([
  ['of many tiny items', listOf(MOST_ITEMS, (id) => `{"id":${id}}`)],
  ['of a few items with many fields', listOf(10, (id) => fields(id, MOST_VALUES / 10 - 10))],
  ['of items that are nested deeply', listOf(MOST_VALUES / 401 - 1, (id) => `{"id":${id},"a":${deep(398)}}`)],
])('a page %s is taken', { timeout: 120_000 }, async (_name, body) => {
  const { workspace } = await createScene({ instead: () => ({ body }) })

  const { code, stderr } = await workspace.run(['sync'])

  expect(code, stderr).toBe(0)
})
