/** An item as it stands in a list: which version of it, and in which of two spellings that mean the same. */
export interface ListItem {
  id: number
  version: number
  spelling: 0 | 1
}

export interface SimulatedList {
  perPage: number
  items: ListItem[]
  /** What was deleted, the last one last. */
  gone: ListItem[]
  /** The id that the next item gets. */
  nextId: number
}

/** Where an item is put: in front, at the end, or somewhere; `place` counts from 0 and wraps around. */
export type Spot = 'front' | 'end' | { place: number }

/** What can happen to a list between any two requests. Whoever adds a kind here adds what the oracle makes of it. */
export type Change =
  /** The item gets another version in its place. */
  | { kind: 'update'; place: number }
  /** The same version in other words: other order of its fields, 20.0 for 20. */
  | { kind: 'respell'; place: number }
  | { kind: 'insert'; to: Spot }
  /** So many come at one stroke, each outside the one before. */
  | { kind: 'insert many'; to: Spot; count: number }
  | { kind: 'delete'; place: number }
  /** As an update does in a list that is sorted by the time of the last one. */
  | { kind: 'move'; place: number; to: Spot }
  /** What was deleted last is listed again. */
  | { kind: 'list again'; to: Spot }
  /** So many in a row go at one stroke, from this place on. */
  | { kind: 'delete many'; place: number; count: number }

/** What a change has done to the order in which items are listed. */
export interface Movement {
  added: number[]
  removed: number[]
  moved: number[]
}

export function createList(perPage: number, count: number): SimulatedList {
  const items = Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    version: 0,
    spelling: 0 as const,
  }))
  return { perPage, items, gone: [], nextId: count + 1 }
}

/** Where many come again and again, nobody could read a list that has no bound. */
const MOST_ITEMS = 150

/** `place` counts from 0 and wraps around, so that a change fits a list of any length. */
export function applyChange(list: SimulatedList, change: Change): Movement {
  const { items, gone } = list
  switch (change.kind) {
    case 'update':
      return rewrite(items, change.place, (item) => ({ ...item, version: item.version + 1 }))
    case 'respell':
      return rewrite(items, change.place, (item) => ({ ...item, spelling: item.spelling === 0 ? 1 : 0 }))
    case 'insert':
      return add(items, newItems(list, 1), change.to)
    case 'insert many':
      return add(items, newItems(list, Math.min(change.count, MOST_ITEMS - items.length)), change.to)
    case 'list again':
      return add(items, gone.splice(-1), change.to)
    case 'move': {
      const { added: moved } = add(items, take(items, change.place, 1), change.to)
      return { added: [], removed: [], moved }
    }
    case 'delete':
    case 'delete many':
  }
  const taken = take(items, change.place, change.kind === 'delete' ? 1 : change.count)
  gone.push(...taken)
  return { added: [], removed: taken.map(({ id }) => id), moved: [] }
}

function newItems(list: SimulatedList, count: number): ListItem[] {
  return Array.from({ length: Math.max(0, count) }, () => ({ id: list.nextId++, version: 0, spelling: 0 }))
}

function indexOf(items: readonly ListItem[], place: number): number {
  return place % Math.max(items.length, 1)
}

function rewrite(items: ListItem[], place: number, anew: (item: ListItem) => ListItem): Movement {
  const index = indexOf(items, place)
  const item = items[index]
  if (item) items[index] = anew(item)
  return { added: [], removed: [], moved: [] }
}

function take(items: ListItem[], place: number, count: number): ListItem[] {
  return items.splice(indexOf(items, place), count)
}

function add(items: ListItem[], added: readonly ListItem[], to: Spot): Movement {
  for (const item of added) {
    const index = to === 'front' ? 0 : to === 'end' ? items.length : to.place % (items.length + 1)
    items.splice(index, 0, item)
  }
  return { added: added.map(({ id }) => id), removed: [], moved: [] }
}

export function itemText({ id, version, spelling }: ListItem): string {
  const half = version % 3 === 2 ? '.5' : ''
  const note = version > 2 ? `,"note":"n${version}"` : ''
  return spelling === 0
    ? `{"id":${id},"amount":${version}${half},"version":${version}${note}}`
    : `{"version":${version}, "amount":${version}${half || '.'}0,"id":${id}${note}}`
}

/** What a request asks for beside the page. The one filter that the server knows takes the odd or the even ids. */
export interface ListFilters {
  parity?: string
}

export function isListed({ id }: Pick<ListItem, 'id'>, { parity }: ListFilters): boolean {
  return parity === undefined || parity === (id % 2 === 0 ? 'even' : 'odd')
}

/** The items that a request with these filters asks for, in their order. */
export function listedItems(list: SimulatedList | undefined, filters: ListFilters): ListItem[] {
  return (list?.items ?? []).filter((item) => isListed(item, filters))
}

export interface ListPage {
  number: number
  items: readonly ListItem[]
  next: number | null
  total: number
  lastPage: number
}

export function pageAt(list: SimulatedList, number: number, filters: ListFilters): ListPage {
  const { perPage } = list
  const listed = listedItems(list, filters)
  const lastPage = Math.max(Math.ceil(listed.length / perPage), 1)
  const shown = listed.slice((number - 1) * perPage, number * perPage)
  const next = number < lastPage ? number + 1 : null
  return { number, items: shown, next, total: listed.length, lastPage }
}

/** The envelope that Laravel's paginator makes. */
export function pageBody(page: ListPage, address: string, filters: ListFilters): string {
  const { number, items, next, total, lastPage } = page
  const query = filters.parity === undefined ? '' : `parity=${filters.parity}&`
  const link = (to: number | null) => (to === null ? 'null' : `"${address}?${query}page=${to}"`)
  const prev = number > 1 ? number - 1 : null
  const data = items.map(itemText).join(',')
  return (
    `{"success":true,"data":[${data}],` +
    `"links":{"first":${link(1)},"last":${link(lastPage)},"prev":${link(prev)},"next":${link(next)}},` +
    `"meta":{"current_page":${number},"last_page":${lastPage},"total":${total}}}`
  )
}
