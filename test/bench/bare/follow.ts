import { Agent } from 'node:http'
import got from 'got'

/** As much of an answer as a loop that trusts the server looks at. */
export interface ListPage {
  data: { id: number }[]
  links: { next: string | null }
}

/** What every loop sends, as the real program does. */
export const HEADERS = {
  accept: 'application/json',
  authorization: 'Bearer 1|bench',
  'x-service-organization': '00000000-0000-4000-8000-000000000001',
}

/** Follows a list with got, set as the program sets it, from its first page to its last, and checks nothing. */
export async function followWithGot(list: string, onPage: (page: ListPage) => void): Promise<void> {
  const client = got.extend({
    agent: { http: new Agent({ keepAlive: true }) },
    followRedirect: false,
    retry: { limit: 0 },
    throwHttpErrors: false,
    timeout: { request: 30_000 },
    responseType: 'buffer',
    headers: HEADERS,
  })
  let next: string | null = list
  while (next !== null) {
    const { rawBody }: { rawBody: Uint8Array } = await client(next)
    const page = JSON.parse(Buffer.from(rawBody).toString()) as ListPage
    onPage(page)
    next = page.links.next
  }
}
