/** An item as it stands in a list: which version of it, and in which of two spellings that mean the same. */
export interface ListItem {
  id: number
  version: number
  isRespelled: boolean
}

export interface SimulatedList {
  perPage: number
  items: ListItem[]
  /** What was deleted, the last one last. */
  gone: ListItem[]
  /** The id that the next item gets. */
  nextId: number
}

/** What can happen to a list between any two requests. Whoever adds a kind here adds what the oracle makes of it. */
export interface Change {
  /**
   * `update`: the item gets another version in its place. `respell`: the same version in other words, with another order of its fields, 20.0 for
   * 20. `move`: as an update does in a list that is sorted by the time of the last one. `list again`: what was deleted last.
   */
  kind: 'update' | 'respell' | 'insert' | 'delete' | 'move' | 'list again'
  /** Where the item stands, from 0; it wraps around, so that a change fits a list of any length. */
  place: number
  /** Where one is put, likewise. */
  to: 'front' | 'end' | number
  /** So many are deleted in a row, or inserted, each outside the one before, at one stroke. */
  count: number
}

/** What a change has done to the order in which items are listed. */
export interface Movement {
  added: number[]
  removed: number[]
  moved: number[]
}

export function createList(perPage: number, count: number): SimulatedList {
  const list: SimulatedList = { perPage, items: [], gone: [], nextId: 1 }
  list.items.push(...newItems(list, count))
  return list
}

function newItems(list: SimulatedList, count: number): ListItem[] {
  return Array.from({ length: Math.max(0, count) }, () => ({
    id: list.nextId++,
    version: 0,
    isRespelled: false,
  }))
}

/** Where many come again and again, nobody could read a list that has no bound. */
const MOST_ITEMS = 150

export function applyChange(list: SimulatedList, { kind, place, to, count }: Change): Movement {
  const { items, gone } = list
  const movement: Movement = { added: [], removed: [], moved: [] }
  const at = place % Math.max(items.length, 1)
  const item = items[at]
  if (kind === 'update') {
    if (item) items[at] = { ...item, version: item.version + 1 }
  } else if (kind === 'respell') {
    if (item) items[at] = { ...item, isRespelled: !item.isRespelled }
  } else if (kind === 'delete') {
    const taken = items.splice(at, count)
    gone.push(...taken)
    movement.removed = taken.map(({ id }) => id)
  } else {
    const put =
      kind === 'insert'
        ? newItems(list, Math.min(count, MOST_ITEMS - items.length))
        : kind === 'move'
          ? items.splice(at, 1)
          : gone.splice(-1)
    for (const one of put) {
      const index = to === 'front' ? 0 : to === 'end' ? items.length : to % (items.length + 1)
      items.splice(index, 0, one)
    }
    movement[kind === 'move' ? 'moved' : 'added'] = put.map(({ id }) => id)
  }
  return movement
}

export function itemText({ id, version, isRespelled }: ListItem): string {
  const half = version % 3 === 2 ? '.5' : ''
  const note = version > 2 ? `,"note":"n${version}"` : ''
  return isRespelled
    ? `{"version":${version}, "amount":${version}${half || '.'}0,"id":${id}${note}}`
    : `{"id":${id},"amount":${version}${half},"version":${version}${note}}`
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

export type ListPage = ReturnType<typeof pageAt>

export function pageAt(list: SimulatedList, number: number, filters: ListFilters) {
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
