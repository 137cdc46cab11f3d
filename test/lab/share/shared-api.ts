import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createData, type Data } from '../../../src/sandbox/data.ts'
import { openingOf } from '../../../src/sandbox/order-life.ts'
import { startSandbox } from '../../../src/sandbox/server.ts'
import { createThrottle } from '../../simulation/server.ts'

/** Organizations of a sandbox of its own, whose lists have as many rows and as many new ones. */
export interface SharedLists {
  organizations: number
  orders: number
  /** Three new ones come a minute, times this. */
  speed: number
}

/** A list behind the shared token. */
export interface SharedList {
  id: string
  name: string
  speed: number
  /** When new orders appear, in milliseconds after the lists began to live, by their number. */
  appeared(untilMs: number): Map<string, number>
}

/** Live sandboxes whose organizations share one token and its limit. Until they begin to live, nothing changes and nobody waits. */
export interface SharedApi {
  url: string
  token: string
  lists: readonly SharedList[]
  begin(): void
  /** Milliseconds of each request since. */
  requests: readonly number[]
  close(): Promise<void>
}

const TOKEN = '1|Shared-by-all-x7Qp93LmZt5VbRw'

export async function startSharedApi(
  kinds: readonly SharedLists[],
  requestsPerMinute: number,
): Promise<SharedApi> {
  let beganAt: number | null = null
  const now = () => (beganAt === null ? 0 : Date.now() - beganAt)
  const requests: number[] = []
  const throttle = createThrottle({ limits: [{ most: requestsPerMinute, windowSeconds: 60 }], headers: true })
  const places = new Map<string, { port: number; token: string }>()
  const lists: SharedList[] = []
  const sandboxes = await Promise.all(
    kinds.map((kind, seed) =>
      startSandbox({
        ...kind,
        establishments: 0,
        seed,
        live: true,
        order: 'first',
        requestsPerMinute: 0,
        port: 0,
        now,
      }),
    ),
  )
  for (const [seed, { url, organizations }] of sandboxes.entries())
    for (const [organization, { id, token }] of organizations.entries()) {
      const { orders, speed } = kinds[seed] ?? { orders: 0, speed: 0 }
      const { orders: data } = createData({ seed, organization, orders, establishments: 0, live: true })
      places.set(id, { port: Number(new URL(url).port), token })
      lists.push({
        id,
        name: `o${lists.length}`,
        speed,
        appeared: (until) => appearedBy(data, orders, speed, until),
      })
    }

  const server = createServer((asked, answered) => {
    const id = String(asked.headers['x-service-organization'])
    const place = places.get(id)
    if (asked.headers.authorization !== `Bearer ${TOKEN}` || !place) {
      answered.writeHead(401, { 'content-type': 'application/json' }).end('{"message":"Unauthenticated."}')
      return
    }
    const verdict = beganAt === null ? null : throttle.admit(TOKEN, Date.now())
    if (verdict) requests.push(now())
    if (verdict?.admitted === false) {
      const headers = { 'content-type': 'application/json', ...verdict.headers }
      answered.writeHead(429, headers).end('{"message":"Too Many Attempts."}')
      return
    }
    const headers = { ...asked.headers, authorization: `Bearer ${place.token}` }
    request({ port: place.port, host: '127.0.0.1', path: asked.url, headers }, (answer) => {
      answered.writeHead(answer.statusCode ?? 500, { ...answer.headers, ...verdict?.headers })
      answer.pipe(answered)
    })
      .on('error', () => answered.destroy())
      .end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: TOKEN,
    lists,
    begin() {
      beganAt = Date.now()
    },
    requests,
    async close() {
      server.closeAllConnections()
      server.close()
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()))
    },
  }
}

function appearedBy(
  data: Data['orders'],
  originals: number,
  speed: number,
  untilMs: number,
): Map<string, number> {
  const tick = Math.floor((untilMs * speed) / 1000)
  const deleted = data.deletedAt(tick)
  const opening = openingOf({ originals, live: true })
  const fresh = Array.from({ length: data.countAt(tick) - originals }, (_, at) => originals + at)
  return new Map(
    fresh
      .filter((index) => !deleted.has(index))
      .map((index) => [numberOf(index), ((data.createdAt(index) - opening + 1) * 1000) / speed]),
  )
}

function numberOf(index: number): string {
  return `ORD-${String(index + 1).padStart(6, '0')}`
}
