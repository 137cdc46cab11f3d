import type { Page, PageSource } from '../../src/sync/types.ts'
import { pageOf } from './pages.ts'

/** A list as the page loop's source shows it: paged as Laravel does, of items that are only what their id says. */
export interface ScriptedList {
  source: PageSource
  /** The list as it stands now; whoever wants it to move changes it. */
  ids: number[]
  /** The pages that were asked for. */
  asked: number[]
}

export interface Script {
  ids: number[]
  perPage?: number
  /** The item with this id, where it is more than that. */
  item?: (id: number) => string
  /** Before an answer is made; the answers are counted from 1. May throw. */
  before?: (answer: number, list: ScriptedList) => unknown
  /** The answer that is given instead of the right one. */
  instead?: (page: Page, answer: number) => Page
}

export function scriptedList({ ids, perPage = 3, item = bare, before, instead }: Script): ScriptedList {
  const list: ScriptedList = {
    ids,
    asked: [],
    source: {
      refusal: async () => null,
      limit: () => null,
      async fetchPage(number, observe, signal) {
        signal.throwIfAborted()
        observe({ kind: 'request' })
        const answer = list.asked.push(number)
        await before?.(answer, list)
        const page = pageAt(list.ids, number, perPage, item)
        return instead ? instead(page, answer) : page
      },
    },
  }
  return list
}

function bare(id: number): string {
  return `{"id":${id}}`
}

function pageAt(ids: readonly number[], number: number, perPage: number, item: (id: number) => string): Page {
  const lastPage = Math.max(Math.ceil(ids.length / perPage), 1)
  const shown = ids.slice((number - 1) * perPage, number * perPage)
  return pageOf(shown.map(item), {
    number,
    next: number < lastPage ? number + 1 : null,
    total: ids.length,
    lastPage,
  })
}

/** The numbers from 1 to `count`. */
export function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}
