import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { atEndOfFile } from './at-end-of-file.ts'
import { createWatch } from './watch.ts'

/** A request as a test wants to see it. */
export interface Asked {
  path: string
  /** The last part of the path. */
  collection: string
  page: number
  query: URLSearchParams
  organization: string
  token: string
  headers: IncomingHttpHeaders
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown
  /** Answers in place of the server, with the connection in its hands; it is given what would have been sent. */
  fault?: Fault
}

export type Fault = (response: ServerResponse, text: string, asked: Asked) => void

export interface ListServer {
  url: string
  /** Every request so far, in the order they came. */
  asked: Asked[]
  /** The first request, past or to come, that `isMeant` is true for. */
  arrival(isMeant: (asked: Asked) => boolean): Promise<Asked>
  /** As soon as there are so many of them. */
  arrivals(isMeant: (asked: Asked) => boolean, count: number): Promise<Asked[]>
  close(): Promise<void>
}

/**
 * A server on loopback that answers each request as `reply` says; it is closed after the tests of the file.
 * @param tls A key and a certificate, in PEM: then it speaks https.
 */
export async function serve(
  reply: (asked: Asked) => Reply | Promise<Reply>,
  tls?: { key: string; cert: string },
): Promise<ListServer> {
  const asked: Asked[] = []
  const { changed, until } = createWatch()
  const listener: RequestListener = (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const one: Asked = {
      path: url.pathname,
      collection: url.pathname.split('/').at(-1) ?? '',
      page: Number(url.searchParams.get('page') ?? 1),
      query: url.searchParams,
      organization: String(request.headers['x-service-organization']),
      token: String(request.headers.authorization).replace(/^Bearer /, ''),
      headers: request.headers,
    }
    asked.push(one)
    changed()
    void Promise.resolve(reply(one)).then((answer) => send(response, answer, one))
  }
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  // Node's five seconds are over on a busy machine while the program sends its next request.
  server.keepAliveTimeout = 600_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : address

  const running: ListServer = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    asked,
    arrival: (isMeant) => until(() => asked.find(isMeant)),
    arrivals: (isMeant, count) =>
      until(() => {
        const found = asked.filter(isMeant)
        return found.length < count ? undefined : found
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  atEndOfFile(running.close)
  return running
}

function send(
  response: ServerResponse,
  { status = 200, headers = {}, body = '', fault }: Reply,
  asked: Asked,
): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const type = text.startsWith('<') ? 'text/html' : 'application/json'
  if (fault) fault(response, text, asked)
  else response.writeHead(status, { 'content-type': type, ...headers }).end(text)
}

/** The page that was asked for, in the envelope of the API, with links that carry the query on. */
export function pageOf(
  list: readonly unknown[],
  { path, page, query }: Pick<Asked, 'path' | 'page' | 'query'>,
  { perPage = 2 }: { perPage?: number } = {},
): Reply {
  const lastPage = Math.max(1, Math.ceil(list.length / perPage))
  const link = (number: number) => {
    const parameters = new URLSearchParams(query)
    parameters.set('page', String(number))
    return `http://127.0.0.1${path}?${parameters.toString()}`
  }
  return {
    body: {
      data: list.slice((page - 1) * perPage, page * perPage),
      links: {
        first: link(1),
        last: link(lastPage),
        prev: page > 1 ? link(page - 1) : null,
        next: page < lastPage ? link(page + 1) : null,
      },
      meta: { current_page: page, last_page: lastPage, per_page: perPage, total: list.length },
      success: true,
      message: 'ok',
    },
  }
}

/** So many items, `id` from 1. */
export function items(count: number): { id: number; state: string }[] {
  return Array.from({ length: count }, (_, index) => ({ id: index + 1, state: index % 2 ? 'paid' : 'open' }))
}
