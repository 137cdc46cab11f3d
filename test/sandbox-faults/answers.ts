import type { Fault } from '../helpers/list-server.ts'

// Answers that come whole, and are not what was asked for.

/** A status with these headers, and a body that shows the token that came, as debug pages do. */
export function status(code: number, headers: Record<string, string> = {}): Fault {
  return (response, _text, { token }) => {
    const echoes = { 'x-debug-authorization': `Bearer ${token}`, location: `/login?token=${token}` }
    response.writeHead(code, { ...echoes, ...headers })
    response.end(JSON.stringify({ message: `You sent ${token}.`, token }))
  }
}

/** An answer with status 200 and this text; the function is given the token that came. */
export function text(
  body: string | ((token: string) => string),
  headers: Record<string, string> = {},
): Fault {
  return (response, _text, { token }) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : body(token))
  }
}

/** The right page, but for some of its fields. */
export function changed(change: (page: number, token: string) => Record<string, unknown>): Fault {
  return (response, body, { page, token }) => {
    response.end(JSON.stringify({ ...(JSON.parse(body) as object), ...change(page, token) }))
  }
}

/** The right page with another link to the next one. */
export function next(link: (page: number, token: string) => unknown): Fault {
  return changed((page, token) => ({ links: { next: link(page, token) } }))
}

/** The right page with these items in front of its own. */
export function withItems(...items: string[]): Fault {
  return (response, body) => response.end(body.replace('"data":[', `"data":[${items.join(',')},`))
}
