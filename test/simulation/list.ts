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

/** `place` counts from 0 and wraps around, so that a change fits a list of any length. */
export function applyChange(list: SimulatedList, change: Change): Movement {
  switch (change.kind) {
    case 'update':
      return rewrite(list, change.place, (item) => ({ ...item, version: item.version + 1 }))
    case 'respell':
      return rewrite(list, change.place, (item) => ({ ...item, spelling: item.spelling === 0 ? 1 : 0 }))
    case 'insert':
      return add(list, { id: list.nextId++, version: 0, spelling: 0 }, change.to)
    case 'insert many':
      return addMany(list, change.to, change.count)
    case 'delete':
      return remove(list, change.place, 1)
    case 'delete many':
      return remove(list, change.place, change.count)
    case 'list again': {
      const item = list.gone.pop()
      return item ? add(list, item, change.to) : nothing()
    }
    case 'move':
      break
  }
  return move(list, change.place, change.to)
}

function nothing(): Movement {
  return { added: [], removed: [], moved: [] }
}

function indexOf({ items }: SimulatedList, place: number): number {
  return place % Math.max(items.length, 1)
}

function rewrite(list: SimulatedList, place: number, anew: (item: ListItem) => ListItem): Movement {
  const index = indexOf(list, place)
  const item = list.items[index]
  if (item) list.items[index] = anew(item)
  return nothing()
}

function put({ items }: SimulatedList, item: ListItem, to: Spot): void {
  const index = to === 'front' ? 0 : to === 'end' ? items.length : to.place % (items.length + 1)
  items.splice(index, 0, item)
}

function move(list: SimulatedList, place: number, to: Spot): Movement {
  const [item] = list.items.splice(indexOf(list, place), 1)
  if (!item) return nothing()
  put(list, item, to)
  return { ...nothing(), moved: [item.id] }
}

function add(list: SimulatedList, item: ListItem, to: Spot): Movement {
  put(list, item, to)
  return { ...nothing(), added: [item.id] }
}

/** Where many come again and again, nobody could read a list that has no bound. */
const MOST_ITEMS = 150

function addMany(list: SimulatedList, to: Spot, count: number): Movement {
  const room = Math.max(0, MOST_ITEMS - list.items.length)
  const added = Array.from({ length: Math.min(count, room) }, () => list.nextId++)
  for (const id of added) put(list, { id, version: 0, spelling: 0 }, to)
  return { ...nothing(), added }
}

function remove(list: SimulatedList, place: number, count: number): Movement {
  const removed = list.items.splice(indexOf(list, place), count)
  list.gone.push(...removed)
  return { ...nothing(), removed: removed.map(({ id }) => id) }
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

export interface ListPage {
  number: number
  items: readonly ListItem[]
  next: number | null
  total: number
  lastPage: number
}

export function pageAt({ perPage, items }: SimulatedList, number: number, filters: ListFilters): ListPage {
  const listed = items.filter((item) => isListed(item, filters))
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
