import { createServer, type ServerResponse } from 'node:http'
import process from 'node:process'
import { type PageAt, pagesMadeBefore, pagesOnDemand } from './pages.ts'

// Serves one list of orders on loopback, in a process of its own, to whoever asks. `serving.ts` starts it.

export interface ServerOptions {
  orders: number
  gzip: boolean
  /** How long an answer is held back. */
  latencyMs: number
  /** For lists that no memory holds; these are never packed. */
  onDemand: boolean
}

/** What the process tells the one that started it. */
export interface Told {
  /** Once it listens and all answers are made. */
  url?: string
  /** When each request came since it was asked the last time; milliseconds by a clock of its own. */
  arrivals?: number[]
}

const PATH = '/api/v1/admin/orders'

const NOTHING_YET: PageAt = () => undefined

function serve({ orders, gzip, latencyMs, onDemand }: ServerOptions): void {
  let arrivals: number[] = []
  let pageAt: PageAt = NOTHING_YET
  const headers = { 'content-type': 'application/json', ...(gzip ? { 'content-encoding': 'gzip' } : {}) }

  function answer(response: ServerResponse, target: string): void {
    const body = pageAt(Number(/[?&]page=(\d+)/.exec(target)?.[1] ?? 1))
    if (body === undefined) response.writeHead(404).end()
    else response.writeHead(200, { ...headers, 'content-length': body.length }).end(body)
  }

  const server = createServer(({ url = '' }, response) => {
    arrivals.push(performance.now())
    if (latencyMs === 0) answer(response, url)
    else setTimeout(answer, latencyMs, response, url)
  })
  server.keepAliveTimeout = 75_000
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    const origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`
    const list = { orders, url: `${origin}${PATH}`, gzip }
    pageAt = onDemand ? pagesOnDemand(list) : pagesMadeBefore(list)
    tell({ url: origin })
  })
  process.on('message', () => {
    tell({ arrivals })
    arrivals = []
  })
}

function tell(told: Told): void {
  process.send?.(told)
}

// Whoever started it may be killed, and nobody else would end it.
process.on('disconnect', () => process.exit())
serve(JSON.parse(process.argv[2] ?? '') as ServerOptions)
