import { createServer } from 'node:http'
import process from 'node:process'

// Serves a list of orders on loopback, in a process of its own: `run.ts` starts it with the number of orders and the latency in ms.

const [, , orders = 0, latencyMs = 0] = process.argv.map(Number)
const PAGE_SIZE = 25
const PATH = '/api/v1/admin/orders'

/** The JSON of an order but for its id: the pages repeat 25 of them, which keeps the server fast. About 900 bytes. */
const rests = Array.from({ length: PAGE_SIZE }, (_, index) => {
  const cents = 1000 + 137 * index
  const lines = Array.from({ length: 1 + (index % 3) }, (_line, at) => ({
    sku: `SKU-${at}`,
    name: `Grüner Tee ${at}`,
    quantity: at + 1,
    unit_price: '4.50',
    price: 4.5 * (at + 1),
  }))
  return JSON.stringify({
    number: `ORD-${String(index).padStart(6, '0')}`,
    state: ['paid', 'shipped', 'delivered'][index % 3],
    currency: 'EUR',
    total: (cents / 100).toFixed(2),
    total_cents: cents,
    tax_rate: 0.19,
    is_gift: index % 5 === 0,
    payment_method: index % 4 === 0 ? null : 'card',
    customer: {
      id: 20_000 + index,
      email: `customer${index}@example.com`,
      name: 'Zoë Müller',
      address: { street: 'Hauptstraße 1', zip: '06381', city: 'Málaga', country: 'ES' },
    },
    establishment_id: 100 + index,
    items: lines,
    tags: ['b2b', 'été'],
    note: 'Please ring twice; the door is at the back of the house.',
    reference_number: `51750063520500000${index}`,
    created_at: '2025-01-01T10:00:00.000000Z',
    updated_at: '2025-01-02T10:00:00.000000Z',
    delivered_at: null,
  }).slice(1)
})

const lastPage = Math.max(1, Math.ceil(orders / PAGE_SIZE))

function pageText(page: number, list: string): string {
  const first = (page - 1) * PAGE_SIZE
  const items = rests
    .slice(0, Math.max(0, orders - first))
    .map((rest, index) => `{"id":${first + index + 1},${rest}`)
  const link = (to: number) => (to < 1 || to > lastPage ? null : `${list}?page=${to}`)
  const links = { first: link(1), last: link(lastPage), prev: link(page - 1), next: link(page + 1) }
  const meta = { current_page: page, last_page: lastPage, per_page: PAGE_SIZE, total: orders }
  return `{"success":true,"message":"","data":[${items.join(',')}],"links":${JSON.stringify(links)},"meta":${JSON.stringify(meta)}}`
}

const server = createServer(({ url = '', headers }, response) => {
  const body = pageText(Number(/[?&]page=(\d+)/.exec(url)?.[1] ?? 1), `http://${headers.host}${PATH}`)
  response.setHeader('content-type', 'application/json').setHeader('content-length', Buffer.byteLength(body))
  if (latencyMs === 0) response.end(body)
  else setTimeout(() => response.end(body), latencyMs)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(`http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`)
})

// Nothing else ends it if its parent is killed.
process.on('disconnect', () => process.exit())
