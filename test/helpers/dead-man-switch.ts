import { createServer, type ServerResponse } from 'node:http'
import { atEndOfFile } from './at-end-of-file.ts'

interface Ping {
  method: string
  path: string
  body: string
  headers: object
}

/**
 * A dead-man switch at this path, which answers as `reply` says. `arrival` resolves with the first ping behind so many, past or
 * to come, whose path ends so.
 */
export async function createSwitch(
  name = 'switch',
  reply: (response: ServerResponse) => void = (response) => response.end(),
) {
  const pings: Ping[] = []
  const watchers = new Set<() => void>()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      pings.push({ method, path, body, headers })
      reply(response)
      for (const watch of watchers) watch()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => server.close().closeAllConnections())
  const address = server.address()
  const arrival = (end: string, after = 0) =>
    new Promise<Ping>((resolve) => {
      const watch = () => {
        const found = pings.slice(after).find(({ path }) => path.endsWith(end))
        if (found) resolve(found)
      }
      watchers.add(watch)
      watch()
    })
  return {
    pings,
    arrival,
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/${name}`,
  }
}
