import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { listen } from './loopback.ts'
import { createWatch } from './watch.ts'

/** A request as a test wants to see it. */
export interface Asked {
  method: string
  path: string
  /** The last part of the path. */
  collection: string
  page: number
  query: URLSearchParams
  organization: string
  token: string
  headers: IncomingHttpHeaders
  /** Of a POST. */
  body: string
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown
  /** Answers in place of the server, with the connection in its hands; it is given what would have been sent. */
  fault?: Fault
}

export type Fault = (response: ServerResponse, text: string, asked: Asked) => unknown

export type ListServer = Awaited<ReturnType<typeof serve>>

/**
 * A server on loopback that answers each request as `reply` says, until the tests of the file have ended.
 * @param tls A key and a certificate, in PEM: then it speaks https.
 */
export async function serve(
  reply: (asked: Asked) => Reply | Promise<Reply>,
  tls?: { key: string; cert: string },
) {
  /** Every request so far, in the order they came. */
  const asked: Asked[] = []
  const { changed, until } = createWatch()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '/', headers } = request
    const { pathname: path, searchParams: query } = new URL(url, 'http://localhost')
    const one: Asked = {
      method,
      path,
      collection: path.split('/').at(-1) ?? '',
      page: Number(query.get('page') ?? 1),
      query,
      organization: String(headers['x-service-organization']),
      token: String(headers.authorization).replace(/^Bearer /, ''),
      headers,
      body: method === 'POST' ? await text(request) : '',
    }
    asked.push(one)
    changed()
    send(response, await reply(one), one)
  }
  const listener: RequestListener = (request, response) => void answer(request, response)
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  // Node's five seconds are over on a busy machine while the program sends its next request.
  server.keepAliveTimeout = 600_000
  const port = await listen(server)
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    asked,
    /** The first request, past or to come, that `isMeant` is true for; of `count` of them the last. */
    arrival: (isMeant: (one: Asked) => boolean, count = 1) => until(() => asked.filter(isMeant)[count - 1]),
  }
}

function send(
  response: ServerResponse,
  { status = 200, headers = {}, body = '', fault }: Reply,
  asked: Asked,
): void {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  const type = sent.startsWith('<') ? 'text/html' : 'application/json'
  if (fault) fault(response, sent, asked)
  else response.writeHead(status, { 'content-type': type, ...headers }).end(sent)
}

/** The page that was asked for, in the envelope of the API, with links that carry the query on. */
export function pageOf(
  list: readonly unknown[],
  { path, page, query }: Pick<Asked, 'path' | 'page' | 'query'>,
  perPage = 2,
): Reply & { body: object } {
  const lastPage = Math.max(1, Math.ceil(list.length / perPage))
  const link = (number: number) => {
    const parameters = new URLSearchParams(query)
    parameters.set('page', String(number))
    return number < 1 || number > lastPage ? null : `http://127.0.0.1${path}?${parameters.toString()}`
  }
  return {
    body: {
      data: list.slice((page - 1) * perPage, page * perPage),
      links: { first: link(1), last: link(lastPage), prev: link(page - 1), next: link(page + 1) },
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
