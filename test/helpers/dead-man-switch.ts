import { createServer, type ServerResponse } from 'node:http'
import { atEndOfFile } from './at-end-of-file.ts'
import { createWatch } from './watch.ts'

interface Ping {
  method: string
  path: string
  body: string
  headers: object
}

/**
 * A dead-man switch at this path, which answers as `reply` says. `arrival` resolves with the first ping, past or to come, whose path ends so.
 */
export async function createSwitch(
  name = 'switch',
  reply: (response: ServerResponse) => void = (response) => response.end(),
) {
  const pings: Ping[] = []
  const { changed, until } = createWatch()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      pings.push({ method, path, body, headers })
      reply(response)
      changed()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => server.close().closeAllConnections())
  const address = server.address()
  return {
    pings,
    arrival: (end: string) => until(() => pings.find(({ path }) => path.endsWith(end))),
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/${name}`,
  }
}
