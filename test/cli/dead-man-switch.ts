import { createServer } from 'node:http'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'

interface Ping {
  path: string
  body: string
}

/** A dead-man switch. `arrival` resolves with the first ping behind so many, past or to come, whose path ends so. */
export async function createSwitch() {
  const pings: Ping[] = []
  const watchers = new Set<() => void>()
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text
    })
    request.on('end', () => {
      pings.push({ path: request.url ?? '', body })
      response.end()
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
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}/switch`,
  }
}
