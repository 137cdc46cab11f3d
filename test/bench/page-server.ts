import { createServer, type ServerResponse } from 'node:http'
import process from 'node:process'
import { createData } from '../../src/sandbox/data.ts'
import { createEnvelope, PAGE_SIZE, phpJson } from '../../src/sandbox/envelope.ts'

// Serves one list of orders on loopback, in a process of its own. `processes.ts` starts it.

export interface ServerOptions {
  orders: number
  /** Delay of each response. */
  latencyMs: number
}

const PATH = '/api/v1/admin/orders'

const { orders, latencyMs } = JSON.parse(process.argv[2] ?? '') as ServerOptions
const { itemAt } = createData({
  seed: 1,
  organization: 0,
  orders: PAGE_SIZE,
  establishments: 40,
  live: false,
}).orders
/** The JSON of one page's orders, without their ids: all pages repeat them, which keeps the server fast. */
const withoutId = Array.from({ length: PAGE_SIZE }, (_, index) => {
  const { id: _id, ...rest } = itemAt(index, 0)
  return phpJson(rest).slice(1)
})

function pageText(page: number, url: string): string {
  const first = (page - 1) * PAGE_SIZE
  const rests = withoutId.slice(0, Math.max(0, orders - first))
  const items = rests.map((rest, index) => `{"id":${first + index + 1},${rest}`)
  const envelope = phpJson(
    createEnvelope({ page, total: orders, url, filters: '', message: '', items: rests.map(() => ({})) }),
  )
  return `{"data":[${items.join(',')}${envelope.slice(envelope.indexOf('],"links"'))}`
}

function answer(response: ServerResponse, page: number): void {
  const body = pageText(page, `${origin}${PATH}`)
  response.setHeader('content-type', 'application/json').setHeader('content-length', Buffer.byteLength(body))
  response.end(body)
}

let origin = ''
const server = createServer(({ url = '' }, response) => {
  const page = Number(/[?&]page=(\d+)/.exec(url)?.[1] ?? 1)
  if (latencyMs === 0) answer(response, page)
  else setTimeout(answer, latencyMs, response, page)
})
server.keepAliveTimeout = 75_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`
  // The first pages are slow to make: not at the cost of the first contender.
  for (let page = 1; page <= 200; page++) pageText(page, origin)
  process.send?.({ url: origin, list: `${origin}${PATH}` })
})

// Nothing else ends it if its parent is killed.
process.on('disconnect', () => process.exit())
