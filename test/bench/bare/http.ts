import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import process from 'node:process'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { HEADERS, type ListPage } from './follow.ts'

// The least that Node itself can do: the same without got.

const agent = new Agent({ keepAlive: true })

async function ask(url: string): Promise<ListPage> {
  const sent = request(url, { agent, headers: { ...HEADERS, 'accept-encoding': 'gzip' } }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const body = await buffer(response)
  const text = response.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
  return JSON.parse(text.toString()) as ListPage
}

let next: string | null = process.argv[2] ?? ''
let items = 0
while (next !== null) {
  const page = await ask(next)
  items += page.data.length
  next = page.links.next
}
process.stdout.write(`${items}\n`)
