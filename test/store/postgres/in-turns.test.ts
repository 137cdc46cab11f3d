import { expect, it } from 'vitest'
import { inTurns } from '../../../src/store/postgres/queue/queue.ts'

it.each([
  ['', ''],
  ['a1', 'a1'],
  ['a1 a2 a3 b1 b2 c1', 'a1 b1 c1 a2 b2 a3'],
  ['a1 b1 a2 b2', 'a1 b1 a2 b2'],
])('%j waits as %j: of each budget one list after the other', (configured, expected) => {
  const lists = configured.split(' ').map((name) => ({ name, budget: name.slice(0, 1) }))

  expect(
    inTurns(lists)
      .map(({ name }) => name)
      .join(' '),
  ).toBe(expected)
})
