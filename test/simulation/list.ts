/** An item as it stands in a list: which version of it, and in which of two spellings that mean the same. */
export interface ListItem {
  id: number
  version: number
  spelling: 0 | 1
}

export interface SimulatedList {
  perPage: number
  items: ListItem[]
}

/** What can happen to a list between any two requests. Whoever adds a kind here adds what the oracle makes of it. */
export type Change =
  /** The item gets another version in its place. */
  | { kind: 'update'; place: number }
  /** The same version in other words: other order of its fields, 20.0 for 20. */
  | { kind: 'respell'; place: number }

export function createList(perPage: number, count: number): SimulatedList {
  const items = Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    version: 0,
    spelling: 0 as const,
  }))
  return { perPage, items }
}

/** `place` counts from 0 and wraps around, so that a change fits a list of any length. */
export function applyChange(list: SimulatedList, change: Change): void {
  const index = change.place % Math.max(list.items.length, 1)
  const item = list.items[index]
  if (!item) return
  list.items[index] =
    change.kind === 'update'
      ? { ...item, version: item.version + 1 }
      : { ...item, spelling: item.spelling === 0 ? 1 : 0 }
}

export function itemText({ id, version, spelling }: ListItem): string {
  const half = version % 3 === 2 ? '.5' : ''
  const note = version > 2 ? `,"note":"n${version}"` : ''
  return spelling === 0
    ? `{"id":${id},"amount":${version}${half},"version":${version}${note}}`
    : `{"version":${version}, "amount":${version}${half || '.'}0,"id":${id}${note}}`
}

export interface ListPage {
  number: number
  items: readonly ListItem[]
  next: number | null
  total: number
  lastPage: number
}

export function pageAt({ perPage, items }: SimulatedList, number: number): ListPage {
  const lastPage = Math.max(Math.ceil(items.length / perPage), 1)
  const shown = items.slice((number - 1) * perPage, number * perPage)
  return { number, items: shown, next: number < lastPage ? number + 1 : null, total: items.length, lastPage }
}

/** The envelope that Laravel's paginator makes. */
export function pageBody({ number, items, next, total, lastPage }: ListPage, address: string): string {
  const link = (page: number | null) => (page === null ? 'null' : `"${address}?page=${page}"`)
  const prev = number > 1 ? number - 1 : null
  const data = items.map(itemText).join(',')
  return (
    `{"success":true,"data":[${data}],` +
    `"links":{"first":${link(1)},"last":${link(lastPage)},"prev":${link(prev)},"next":${link(next)}},` +
    `"meta":{"current_page":${number},"last_page":${lastPage},"total":${total}}}`
  )
}
