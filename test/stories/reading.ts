import { expect } from 'vitest'

/**
 * That the requests of a process read a list of so many pages on: no page left out, and at most three asked again after what
 * others had asked for before it: the last page written, the one being written, and the one in flight. Behind the last page,
 * any still list is asked for one of its pages once more.
 */
export function expectReadOn(asked: readonly number[], furthest: number, lastPage: number): void {
  const pages = withoutCheck(asked, furthest, lastPage)
  const [first = furthest + 1] = pages
  expect(first).toBeLessThanOrEqual(furthest + 1)
  expect(pages).toEqual(pages.map((_, index) => first + index))
  expect(pages.filter((page) => page <= furthest).length).toBeLessThanOrEqual(3)
}

function withoutCheck(asked: readonly number[], furthest: number, lastPage: number): readonly number[] {
  const isBehindTheEnd = (asked.at(-2) ?? furthest) === lastPage
  return isBehindTheEnd && asked.at(-1) === Math.round(0.37 * lastPage) ? asked.slice(0, -1) : asked
}
