import { afterAll, expect, it } from 'vitest'
import { type Asked, pageOf, type Reply, serve } from '../../helpers/list-server.ts'
import { newSchema, openReader, startPostgres } from '../../helpers/postgres.ts'
import type { Ended, Running } from '../../helpers/processes.ts'
import { startProxy, type TestProxy } from '../../helpers/proxy.ts'
import { createWorkspace, organization, variable } from '../../helpers/workspace.ts'
import { createRandom } from '../../simulation/random.ts'

// Three workers on 60 lists, and everything that can happen to them. `npm run crash:postgres` lets it happen for
// ten minutes; `SEED` says how the dice fall.

const MINUTES = Number(process.env.CRASH_MINUTES ?? 0.4)
const SEED = Number(process.env.SEED ?? 1)
/** Requests in a minute of the one token that is limited. */
const MOST = 120

const server = await startPostgres()
afterAll(() => server.stop())

const tokens = Array.from(
  { length: 6 },
  (_, index) => `${index + 1}|Secret-of-token-${index}-x7Qp93LmZt5VbRw`,
)
const organizations = Array.from({ length: 30 }, (_, index) =>
  organization(`org${index}`, index + 1, { token: tokens[index % tokens.length] }),
)
const COLLECTIONS = ['orders', 'establishments']
const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms))

interface Item {
  id: number
  version: number
}

const PER_PAGE = 5
const WINDOW_MS = 60_000

/**
 * Lists that change with each request, budgets that are counted, tokens that are refused: what the truth is.
 * @param most Requests in a minute with a token of these, which is announced; the others have no limit.
 */
async function startCrashApi(limited: readonly string[], most: number) {
  const lists = new Map<string, Item[]>()
  const revoked = new Set<string>()
  const times = new Map<string, number[]>()
  const windows = new Map<string, { endsAt: number; count: number }>()
  const refusedByBudget: string[] = []
  let isAtRest = false
  let count = 0

  function listFor(id: string, collection: string): Item[] {
    const name = `${id} ${collection}`
    const list = lists.get(name) ?? newList()
    lists.set(name, list)
    return list
  }

  /** What happens to a list between two requests: one comes, one changes, now and then one goes. */
  function change(list: Item[]): void {
    count++
    if (count % 3 === 0) list.push({ id: Math.max(...list.map(({ id }) => id)) + 1, version: 0 })
    const one = list[(count * 7) % list.length]
    if (one) one.version++
    if (count % 5 === 0 && list.length > 20) list.splice((count * 3) % list.length, 1)
  }

  function admit(token: string, now: number): Record<string, string> | null {
    if (!limited.includes(token)) return {}
    const known = windows.get(token)
    const window = known && now < known.endsAt ? known : { endsAt: now + WINDOW_MS, count: 0 }
    windows.set(token, window)
    const left = String(most - ++window.count)
    if (window.count <= most) return { 'x-ratelimit-limit': String(most), 'x-ratelimit-remaining': left }
    refusedByBudget.push(token)
    return null
  }

  function reply(asked: Asked): Reply {
    const { token, organization: id, collection } = asked
    times.set(token, [...(times.get(token) ?? []), Date.now()])
    if (revoked.has(token)) return { status: 401, body: { message: 'Unauthenticated.' } }
    const headers = isAtRest ? {} : admit(token, Date.now())
    if (!headers)
      return { status: 429, headers: { 'retry-after': '60' }, body: { message: 'Too Many Attempts.' } }
    const list = listFor(id, collection)
    if (!isAtRest) change(list)
    return { ...pageOf(list, asked, PER_PAGE), headers }
  }

  const { url } = await serve(reply)
  return {
    url,
    /** The items of a list, by organization and collection. */
    listOf: listFor,
    /** From now on this token is refused, or valid again. */
    revoke(token: string, isRevoked: boolean): void {
      if (isRevoked) revoked.add(token)
      else revoked.delete(token)
    },
    /** When requests with this token came. */
    timesOf: (token: string) => times.get(token) ?? [],
    /** Of each token, the requests that its announced budget had no room for. */
    refusedByBudget,
    /** The lists stand still from now on, and nothing is limited. */
    rest(): void {
      isAtRest = true
    },
    requests: () => [...times.values()].reduce((sum, { length }) => sum + length, 0),
  }
}

function newList(): Item[] {
  return Array.from({ length: 23 }, (_, index) => ({ id: index + 1, version: 0 }))
}

type Api = Awaited<ReturnType<typeof startCrashApi>>
type Rows = Awaited<ReturnType<typeof openReader>>

/** Whose lists are other in the mirror than the API shows them. */
async function differences(api: Api, rows: Rows): Promise<string[]> {
  const found = new Set<string>()
  for (const { id, name } of organizations)
    for (const collection of COLLECTIONS) {
      const sql = `SELECT _json FROM ${collection}_raw WHERE _organization_id = $1 ORDER BY id`
      const mirrored = (await rows(sql, id)).map(({ _json: json }) => String(json))
      const truth = api.listOf(id, collection).map((item) => JSON.stringify(item))
      if (mirrored.join() !== truth.join()) found.add(name)
    }
  return [...found]
}

/** Keys whose versions overlap, have a gap that nothing explains, or stand twice. */
const BROKEN_HISTORY = (collection: string) => `
  SELECT id FROM (
    SELECT id, _valid_from, _valid_to, _reason, lead(_valid_from) OVER own AS next, lead(_json) OVER own AS later, _json
    FROM ${collection}_history WINDOW own AS (PARTITION BY _organization_id, id ORDER BY _valid_from, _valid_to)
  ) AS versions
  WHERE _valid_to < _valid_from OR next < _valid_to OR (_reason = 'changed' AND (next > _valid_to OR later = _json))
`

/** Walks whose pages are not those that their runs have written, each page once. */
const SHARED_PAGES = `
  SELECT w.id FROM sync_walks AS w
  WHERE w.pages <> (SELECT coalesce(sum(r.pages), 0) FROM sync_runs AS r WHERE r.walk_id = w.id)
`

interface Worker {
  proxy: TestProxy
  running: Running
}

/** Workers, each behind a network of its own, and what can happen to them. */
async function createWorkers(start: (port: number) => Running, port: number, random: () => number) {
  const proxies = await Promise.all([1, 2, 3].map(() => startProxy(port)))
  const workers = proxies.map((proxy): Worker => ({ proxy, running: start(proxy.port) }))
  const ends: Promise<Ended>[] = []
  const healing = new Set<() => void>()
  let killed = 0
  let isStopping = false
  for (const worker of workers) supervise(worker)

  /** As a service manager: one that finds no server at its start ends with 4, and is started again. */
  function supervise(worker: Worker): void {
    const { running } = worker
    void running.ended.then((ended) => {
      if (isStopping || worker.running !== running) return
      ends.push(Promise.resolve(ended))
      worker.running = start(worker.proxy.port)
      supervise(worker)
    })
  }

  /** Undoes something after a while, or at the end. */
  function later(ms: number, heal: () => void): void {
    const once = () => {
      if (healing.delete(once)) heal()
    }
    healing.add(once)
    setTimeout(once, ms).unref()
  }

  const some = () => workers[Math.floor(random() * workers.length)] as Worker
  const deeds: Record<string, () => void | Promise<void>> = {
    'kill -9'() {
      const worker = some()
      const { running } = worker
      worker.running = start(worker.proxy.port)
      supervise(worker)
      send(running, 'SIGKILL')
      ends.push(running.ended)
      killed++
    },
    'stop and continue'() {
      const { running } = some()
      send(running, 'SIGSTOP')
      later(500 + random() * 25_000, () => send(running, 'SIGCONT'))
    },
    'cut off and stand still'() {
      const { running, proxy } = some()
      send(running, 'SIGSTOP')
      proxy.cut()
      later(500 + random() * 8000, () => send(running, 'SIGCONT'))
    },
    'cut network': () => some().proxy.cut(),
    'half-open network'() {
      const { proxy } = some()
      proxy.freeze()
      later(1000 + random() * 30_000, proxy.thaw)
    },
    'slow network'() {
      const { proxy } = some()
      proxy.delay(random() * 300)
      later(5000, () => proxy.delay(0))
    },
    async 'end a connection'() {
      // On a connection of its own, since the server restarts.
      const admin = await openReader(newSchema(server))
      await admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'admin-mirror' ORDER BY random() LIMIT 1",
      )
    },
    'restart the server': server.restart,
  }
  const names = Object.keys(deeds)

  return {
    killed: () => killed,
    /** Does one of these things, by the dice. */
    async strike(): Promise<string> {
      const name = names[Math.floor(random() * names.length)] ?? ''
      await deeds[name]?.()
      return name
    },
    /** Undoes whatever was done, and stops all by SIGTERM. Returns how all have ended, these last. */
    async stop(): Promise<Ended[]> {
      isStopping = true
      for (const heal of healing) heal()
      for (const { running } of workers)
        for (const signal of ['SIGCONT', 'SIGTERM'] as const) send(running, signal)
      return Promise.all([...ends, ...workers.map(({ running }) => running.ended)])
    },
  }
}

/** To whoever still lives. */
function send(running: Running, name: NodeJS.Signals): void {
  try {
    running.killAll(name)
  } catch {
    // It is gone.
  }
}

it.skipIf(server.missing !== null)(
  `three workers on 60 lists keep all promises for ${MINUTES} minutes of kills, cuts and restarts`,
  { timeout: MINUTES * 60_000 + 240_000 },
  async () => {
    const [revoked = '', limited = ''] = tokens
    const api = await startCrashApi([limited], MOST)
    const address = newSchema(server)
    const { user, database, schema } = address
    const workspace = createWorkspace({
      baseUrl: api.url,
      organizations,
      collections: { establishments: true },
      database: `postgres://${user}:${variable('DB_PASSWORD')}@127.0.0.1:${variable('DB_PORT')}/${database}?schema=${schema}`,
      schedule: '*/2 * * * * *',
      removals: { brakePercent: 0 },
      rateLimit: { maxWait: '30s' },
    })
    const password = workspace.secret(address.password() ?? '')
    const envOf = (port: number) => ({ DB_PASSWORD: password, DB_PORT: String(port) })
    const random = createRandom(SEED).next
    const start = (port: number) => workspace.start(['start', '--log-level', 'debug'], { env: envOf(port) })
    const workers = await createWorkers(start, address.port, random)
    await pause(4000)
    const told: string[] = []
    let refusedAt = Number.POSITIVE_INFINITY
    for (const end = Date.now() + MINUTES * 60_000; Date.now() < end;) {
      if (told.length === 5) {
        api.revoke(revoked, true)
        refusedAt = Date.now()
      }
      told.push(await workers.strike())
      await pause(300 + random() * 2500)
    }
    const ends = await workers.stop()

    // Whoever had a request on its way when the first answer came may have it refused; nobody asks again.
    const asked = api.timesOf(revoked).filter((at) => at > refusedAt)
    expect(asked.length, told.join(', ')).toBeLessThanOrEqual(3 * 4 + workers.killed())
    expect(api.refusedByBudget, told.join(', ')).toEqual([])
    expect(ends.slice(-3).map(({ code }) => code)).toEqual([0, 0, 0])
    // By itself a worker ends only where it finds no server at its start.
    const others = ends.slice(0, -3).filter(({ code, signal }) => code !== 4 && signal !== 'SIGKILL')
    expect(others.map(({ stderr }) => stderr.slice(-500))).toEqual([])
    // No worker met what nobody has thought of.
    const unknown = ends.flatMap(({ logs }) => logs).filter(({ error_code: code }) => code === 'INTERNAL')
    expect(unknown.slice(0, 3)).toEqual([])

    api.rest()
    api.revoke(revoked, false)
    const env = envOf(address.port)
    expect(await workspace.run(['resume'], { env })).toMatchObject({ code: 0 })
    const after = await openReader(address)
    // An old walk goes on, a new one misses what is gone, and the one after it removes that.
    let different = organizations.map(({ name }) => name)
    for (let turn = 0; turn < 4 && different.length > 0; turn++) {
      const chosen = different.flatMap((name) => ['--org', name])
      const { code, stderr } = await workspace.run(['sync', '--wait', '--accept-removals', ...chosen], {
        env,
      })
      expect(code, stderr).toBe(0)
      different = await differences(api, after)
    }
    expect(different, told.join(', ')).toEqual([])
    for (const collection of COLLECTIONS) expect(await after(BROKEN_HISTORY(collection))).toEqual([])
    expect(await after(SHARED_PAGES)).toEqual([])
    expect(await after("SELECT 1 FROM sync_runs WHERE status = 'running'")).toEqual([])
    if (process.env.CRASH_MINUTES)
      console.info(`${api.requests()} requests, ${told.length} strikes, ${workers.killed()} workers killed`)
  },
)
