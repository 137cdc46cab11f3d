import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pageOf, serve } from '../helpers/list-server.ts'

// Serves a list of orders on loopback, in a process of its own: `run.ts` starts it with the number of orders and the latency in ms.

const [, , orders = 0, latencyMs = 0] = process.argv.map(Number)

/** All but the ids of 25 orders, which the pages repeat; about 900 bytes each. */
const rests = Array.from({ length: 25 }, (_, index) => ({
  number: `ORD-${String(index).padStart(6, '0')}`,
  state: ['paid', 'shipped', 'delivered'][index % 3],
  currency: 'EUR',
  total: (10 + 1.37 * index).toFixed(2),
  total_cents: 1000 + 137 * index,
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
  items: Array.from({ length: 1 + (index % 3) }, (_line, at) => ({
    sku: `SKU-${at}`,
    name: `Grüner Tee ${at}`,
    quantity: at + 1,
    unit_price: '4.50',
    price: 4.5 * (at + 1),
  })),
  tags: ['b2b', 'été'],
  note: 'Please ring twice; the door is at the back of the house.',
  reference_number: `51750063520500000${index}`,
  created_at: '2025-01-01T10:00:00.000000Z',
  updated_at: '2025-01-02T10:00:00.000000Z',
  delivered_at: null,
}))

const list = Array.from({ length: orders }, (_, index) => ({ id: index + 1, ...rests[index % rests.length] }))

const { url } = await serve(async (asked) => {
  if (latencyMs > 0) await sleep(latencyMs)
  return pageOf(list, asked, 25)
})
process.send?.(url)

// Nothing else ends it if its parent is killed.
process.on('disconnect', () => process.exit())
