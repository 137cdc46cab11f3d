import { gzipSync } from 'node:zlib'
import { createData } from '../../src/sandbox/data.ts'
import { createEnvelope, PAGE_SIZE, phpJson } from '../../src/sandbox/envelope.ts'
import { timestamp } from '../../src/sandbox/words.ts'

export interface ListOptions {
  orders: number
  /** Where the list stands, without a query. */
  url: string
  gzip: boolean
}

/** The whole answer for a page; undefined beyond the end. */
export type PageAt = (page: number) => Buffer | undefined

export function pageCount(orders: number): number {
  return Math.max(1, Math.ceil(orders / PAGE_SIZE))
}

/** Every answer is made before the first is asked for, so that the server costs its clients next to nothing. */
export function pagesMadeBefore({ orders, url, gzip }: ListOptions): PageAt {
  const { itemAt } = ordersOf(orders)
  const answers = Array.from({ length: pageCount(orders) }, (_, index) => {
    const items = indexesOf(index + 1, orders).map((order) => itemAt(order, 0))
    const body = phpJson(createEnvelope({ ...envelopeOf(index + 1, orders, url), items }))
    return gzip ? gzipSync(body, { level: 1 }) : Buffer.from(body)
  })
  return (page) => answers[page - 1]
}

/** Makes an answer when it is asked for, out of the orders of one page with other ids and dates: in no memory at all. */
export function pagesOnDemand({ orders, url }: Omit<ListOptions, 'gzip'>): PageAt {
  const { itemAt } = ordersOf(PAGE_SIZE)
  const rests = indexesOf(1, PAGE_SIZE).map((index) => {
    const { id: _id, number: _number, created_at: _created, updated_at: _updated, ...rest } = itemAt(index, 0)
    return phpJson(rest).slice(1)
  })
  return (page) => {
    if (page < 1 || page > pageCount(orders)) return undefined
    const indexes = indexesOf(page, orders)
    const items = indexes.map((index, place) => `${headOf(index)},${rests[place] ?? ''}`)
    const envelope = phpJson(
      createEnvelope({ ...envelopeOf(page, orders, url), items: indexes.map(() => ({})) }),
    )
    return Buffer.from(`{"data":[${items.join(',')}${envelope.slice(envelope.indexOf('],"links"'))}`)
  }
}

/** The id of the order at this place of a list that is made on demand. */
export function idOnDemand(index: number): number {
  return 1000 + index
}

function ordersOf(orders: number) {
  return createData({ seed: 1, organization: 0, orders, establishments: 40 }).orders
}

function indexesOf(page: number, orders: number): number[] {
  const first = (page - 1) * PAGE_SIZE
  return Array.from({ length: Math.max(0, Math.min(PAGE_SIZE, orders - first)) }, (_, place) => first + place)
}

function envelopeOf(page: number, orders: number, url: string) {
  return { page, total: orders, url, filters: '', message: 'Orders retrieved successfully.' }
}

/** Seconds; the first order of a list that is made on demand was placed then, and one comes each minute. */
const FIRST_ORDER = Date.UTC(2024, 0, 1) / 1000

function headOf(index: number): string {
  const createdAt = FIRST_ORDER + index * 60
  const dates = `"created_at":"${timestamp(createdAt)}","updated_at":"${timestamp(createdAt + 3600)}"`
  return `{"id":${idOnDemand(index)},"number":"ORD-${index + 1}",${dates}`
}
