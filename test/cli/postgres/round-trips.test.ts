import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../helpers/postgres.ts'
import { startProxy, type TestProxy } from '../../helpers/proxy.ts'
import { type Asked, pageOf, type Reply, serve } from '../list-server.ts'
import { onPostgres, type PostgresWorkspace } from './on-postgres.ts'

// How often a command waits for the server, counted on the wire: what a long list costs more than a short one, by page.

const server = await startPostgres()
afterAll(() => server.stop())
if (server.missing !== null) console.warn(server.missing)

const PER_PAGE = 10
const [SHORT, LONG] = [5, 35]

/** The server says so once for each time that it was asked: ReadyForQuery, with the state of the transaction behind it. */
const READY = ['I', 'T', 'E'].map((state) => Buffer.from(`Z\0\0\0\x05${state}`, 'latin1'))

function countTrips(proxy: TestProxy): () => number {
  let trips = 0
  proxy.alter((bytes) => {
    for (const sign of READY)
      for (let at = bytes.indexOf(sign); at >= 0; at = bytes.indexOf(sign, at + 1)) trips++
    return bytes
  })
  return () => trips
}

interface Scene extends PostgresWorkspace {
  /** What the list is from now on. */
  list: { pages: number; item: (id: number) => object }
  /** Of one `sync`. */
  trips(): Promise<number>
}

async function createScene(limits: Record<string, string> = {}, more: object = {}): Promise<Scene> {
  const proxy = await startProxy(Number(new URL(server.url).port))
  const trips = countTrips(proxy)
  const list: Scene['list'] = { pages: SHORT, item: (id) => ({ id, name: 'one' }) }
  const reply = (asked: Asked): Reply => {
    const items = Array.from({ length: list.pages * PER_PAGE }, (_, index) => list.item(index + 1))
    return { ...pageOf(items, asked, { perPage: PER_PAGE }), headers: limits }
  }
  const api = await serve(reply)
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const mirror = onPostgres({ url: url.href }, api.url, { refresh: false, ...more })
  return {
    ...mirror,
    list,
    async trips() {
      const before = trips()
      const { code, stderr } = await mirror.run(['sync'])
      expect(code, stderr).toBe(0)
      return trips() - before
    },
  }
}

/** Of a page of a walk whose list is so, without what each walk costs once. */
async function perPage(scene: Scene, item: (id: number, isLong: boolean) => object): Promise<number> {
  Object.assign(scene.list, { pages: SHORT, item: (id: number) => item(id, false) })
  await scene.trips()
  const short = await scene.trips()
  Object.assign(scene.list, { pages: LONG, item: (id: number) => item(id, true) })
  return ((await scene.trips()) - short) / (LONG - SHORT)
}

const UNCHANGED = { id: 0, name: 'one' }

describe.skipIf(server.missing !== null)('a page of a mirror on a server', { timeout: 120_000 }, () => {
  it.each([
    ['whose API announces nothing', {}, {}],
    ['whose API announces a budget', { 'x-ratelimit-limit': '6000', 'x-ratelimit-remaining': '5000' }, {}],
    ['under our own ceiling', {}, { rateLimit: { requestsPerMinute: 6000 } }],
  ])('of new rows, %s, costs three round trips', async (_name, limits, more) => {
    const scene = await createScene(limits, more)

    expect(await perPage(scene, (id) => ({ ...UNCHANGED, id }))).toBeLessThanOrEqual(3.1)
  })

  it('of unchanged rows costs three, of changed ones three', async () => {
    const short = await createScene()
    await short.trips()
    const shortTrips = await short.trips()
    const long = await createScene()
    long.list.pages = LONG
    await long.trips()
    const unchanged = await long.trips()
    long.list.item = (id) => ({ id, name: 'another' })
    const changed = await long.trips()

    expect((unchanged - shortTrips) / (LONG - SHORT)).toBeLessThanOrEqual(3.1)
    expect((changed - shortTrips) / (LONG - SHORT)).toBeLessThanOrEqual(3.1)
  })

  it('that brings a new column costs more, once a column', async () => {
    const scene = await createScene()

    const trips = await perPage(scene, (id, isLong) => ({
      ...UNCHANGED,
      id,
      ...(isLong && id % PER_PAGE === 0 ? { [`field${id}`]: id } : {}),
    }))
    expect(trips).toBeLessThanOrEqual(25)
  })
})
