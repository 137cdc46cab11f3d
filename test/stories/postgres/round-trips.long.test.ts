import { describe, expect, it } from 'vitest'
import { type Asked, pageOf, type Reply, serve } from '../../helpers/list-server.ts'
import { onPostgres, type PostgresWorkspace } from '../../helpers/on-postgres.ts'
import { openDatabase } from '../../helpers/postgres.ts'
import { startProxy, type TestProxy } from '../../helpers/proxy.ts'
import { organization } from '../../helpers/workspace.ts'

// How often a command waits for the server, counted on the wire: what a long list costs more than a short one, by page.

const server = await openDatabase()

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
  /** The same, and how many bytes went over the wire. */
  cost(): Promise<Cost>
}

interface Cost {
  trips: number
  bytes: number
}

async function createScene(
  limits: Record<string, string> = {},
  more: object = {},
  only: readonly string[] = [],
): Promise<Scene> {
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
  const cost = async () => {
    const before = { trips: trips(), bytes: proxy.bytes() }
    const { code, stderr } = await mirror.run(['sync', ...only])
    expect(code, stderr).toBe(0)
    return { trips: trips() - before.trips, bytes: proxy.bytes() - before.bytes }
  }
  return { ...mirror, list, cost, trips: async () => (await cost()).trips }
}

/** Of a page of a walk whose list is so, without what each walk costs once. */
async function perPage(scene: Scene, item: (id: number, isLong: boolean) => object): Promise<number> {
  Object.assign(scene.list, { pages: SHORT, item: (id: number) => item(id, false) })
  await scene.trips()
  const short = await scene.trips()
  Object.assign(scene.list, { pages: LONG, item: (id: number) => item(id, true) })
  return ((await scene.trips()) - short) / (LONG - SHORT)
}

/** Of a page of a list, new or unchanged, in a mirror that holds so many organizations, each with a list that was read. */
async function perPageAmong(organizations: number): Promise<Record<'new' | 'unchanged', Cost>> {
  const all = Array.from({ length: organizations }, (_, index) => organization(`org-${index}`, index + 1))
  const scene = await createScene({}, { organizations: all, refresh: {} }, ['--org', 'org-0'])
  const { list } = scene
  const costs: Cost[] = []
  for (const pages of [SHORT, SHORT, LONG, LONG]) {
    list.pages = pages
    costs.push(await scene.cost())
    if (costs.length === 1) await copyToAll(scene)
  }
  const [, short, added, again] = costs as [Cost, Cost, Cost, Cost]
  const each = (long: Cost): Cost => ({
    trips: (long.trips - short.trips) / (LONG - SHORT),
    bytes: (long.bytes - short.bytes) / (LONG - SHORT),
  })
  return { new: each(added), unchanged: each(again) }
}

/** All other organizations get what the one that was read has. */
async function copyToAll(scene: Scene): Promise<void> {
  const rows = await scene.rows()
  const copy = (table: string, owner: string, more: string) =>
    rows(`
      INSERT INTO ${table}
      SELECT (jsonb_populate_record(one, jsonb_build_object('${owner}', other.id ${more}))).*
      FROM ${table} AS one
      JOIN (SELECT id, row_number() OVER () AS number FROM organizations) AS other
        ON other.id NOT IN (SELECT _organization_id FROM orders)
      WHERE one.${owner} IN (SELECT _organization_id FROM orders)
    `)
  await rows('DELETE FROM sync_jobs WHERE organization_id NOT IN (SELECT _organization_id FROM orders)')
  for (const table of ['sync_jobs', 'sync_walks', 'sync_runs'])
    await copy(table, 'organization_id', ", 'id', 1000 + other.number")
  const number = `'_row', 1000000 * other.number + one._row`
  await rows(`
    INSERT INTO orders_json
    SELECT (jsonb_populate_record(one, jsonb_build_object(${number}))).*
    FROM orders_json AS one
    JOIN (SELECT id, row_number() OVER () AS number FROM organizations) AS other
      ON other.id NOT IN (SELECT _organization_id FROM orders)
  `)
  await copy('orders', '_organization_id', `, ${number}`)
}

const UNCHANGED = { id: 0, name: 'one' }

describe.skipIf(server.missing !== null)('a page of a mirror on a server', () => {
  it.each([
    ['whose API announces nothing', {}, {}],
    ['whose API announces a budget', { 'x-ratelimit-limit': '6000', 'x-ratelimit-remaining': '5000' }, {}],
    ['under our own ceiling', {}, { rateLimit: { requestsPerMinute: 6000 } }],
  ])('of new rows, %s, costs at most 14 round trips', async (_name, limits, more) => {
    const scene = await createScene(limits, more)

    expect(await perPage(scene, (id) => ({ ...UNCHANGED, id }))).toBeLessThanOrEqual(14.1)
  })

  it('of unchanged rows costs at most 9, of changed ones 14', async () => {
    const short = await createScene()
    await short.trips()
    const shortTrips = await short.trips()
    const long = await createScene()
    long.list.pages = LONG
    await long.trips()
    const unchanged = await long.trips()
    long.list.item = (id) => ({ id, name: 'another' })
    const changed = await long.trips()

    expect((unchanged - shortTrips) / (LONG - SHORT)).toBeLessThanOrEqual(9.1)
    expect((changed - shortTrips) / (LONG - SHORT)).toBeLessThanOrEqual(14.1)
  })

  it('costs as many round trips and bytes with 10 organizations as with 10,000', {
    timeout: 600_000,
  }, async () => {
    const few = await perPageAmong(10)
    const many = await perPageAmong(10_000)

    for (const kind of ['new', 'unchanged'] as const) {
      expect(few[kind].trips).toBeLessThanOrEqual(14.1)
      expect(many[kind].trips).toBeLessThanOrEqual(few[kind].trips + 0.1)
      expect(many[kind].bytes).toBeLessThanOrEqual(1.05 * few[kind].bytes)
    }
  })
})
