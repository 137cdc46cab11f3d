import { afterAll, describe, expect, it } from 'vitest'
import { newSchema, openReader, startPostgres } from '../../helpers/postgres.ts'
import { createWorkspace, organization, variable } from '../../helpers/workspace.ts'
import { createRandom } from '../../simulation/random.ts'
import { type CrashApi, startCrashApi } from './crash-api.ts'
import { startWorkers } from './crash-workers.ts'

// Three workers on 60 lists, and everything that can happen to them. `npm run crash -- --store postgres` lets it happen for
// ten minutes; `SEED` says how the dice fall.

const MINUTES = Number(process.env.CRASH_MINUTES ?? 0.4)
const SEED = Number(process.env.SEED ?? 1)
const ORGANIZATIONS = 30
const TOKENS = 6
/** Requests in a minute of the one token that is limited. */
const MOST = 120

const server = await startPostgres()
afterAll(() => server.stop())

const tokens = Array.from(
  { length: TOKENS },
  (_, index) => `${index + 1}|Secret-of-token-${index}-x7Qp93LmZt5VbRw`,
)
const organizations = Array.from({ length: ORGANIZATIONS }, (_, index) =>
  organization(`org${index}`, index + 1, { token: tokens[index % TOKENS] }),
)
const COLLECTIONS = ['orders', 'establishments']
const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms))

async function createScene() {
  const api = await startCrashApi(tokens.slice(1, 2), MOST)
  const address = newSchema(server)
  const { user, database, schema } = address
  const place = `postgres://${user}:${variable('DB_PASSWORD')}@127.0.0.1:${variable('DB_PORT')}/${database}?schema=${schema}`
  const workspace = createWorkspace({
    baseUrl: api.url,
    organizations,
    collections: { establishments: true },
    database: place,
    schedule: '*/2 * * * * *',
    removals: { brakePercent: 0 },
    concurrency: 4,
    rateLimit: { maxWait: '30s' },
  })
  const password = workspace.secret(address.password() ?? '')
  const rows = await openReader(address)
  const envOf = (port: number) => ({ DB_PASSWORD: password, DB_PORT: String(port) })
  return { api, address, workspace, rows, envOf }
}

type Rows = Awaited<ReturnType<typeof createScene>>['rows']

/** Whose lists are other in the mirror than the API shows them. */
async function differences(api: CrashApi, rows: Rows): Promise<string[]> {
  const found = new Set<string>()
  for (const { id, name } of organizations)
    for (const collection of COLLECTIONS) {
      const items = await rows(
        `SELECT _json FROM ${collection}_raw WHERE _organization_id = $1 ORDER BY id`,
        id,
      )
      const mirrored = items.map(({ _json: json }) => String(json)).join()
      const truth = api.listOf(id, collection).map((item) => JSON.stringify(item))
      if (mirrored !== truth.join()) found.add(name)
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

const UNKNOWN = new Set(['INTERNAL', 'CONFIGURATION'])

describe.skipIf(server.missing !== null)('three workers on 60 lists', () => {
  it(`keep all promises for ${MINUTES} minutes of kills, cuts and restarts`, {
    timeout: MINUTES * 60_000 + 240_000,
  }, async () => {
    const { api, address, workspace, rows, envOf } = await createScene()
    const random = createRandom(SEED).next
    const told: string[] = []
    const workers = await startWorkers({
      workspace,
      count: 3,
      port: address.port,
      random,
      envOf,
      async terminate() {
        await admin(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'admin-mirror' ORDER BY random() LIMIT 1",
        )
      },
      restart: server.restart,
    })
    /** On a connection of its own, since the server restarts. */
    async function admin(sql: string) {
      const reader = await openReader(address)
      return reader(sql)
    }
    await pause(4000)
    const end = Date.now() + MINUTES * 60_000
    const [revoked = ''] = tokens
    let refusedAt = Number.POSITIVE_INFINITY
    for (let count = 0; Date.now() < end; count++) {
      if (count === 5) {
        api.revoke(revoked, true)
        refusedAt = Date.now()
      }
      told.push(await workers.strike())
      await pause(300 + random() * 2500)
    }
    const ends = await workers.stop()

    // Whoever had a request on its way when the first answer came may have it refused; nobody asks again.
    const asked = api.timesOf(revoked).filter((at) => at > refusedAt)
    expect(asked.length, told.join(', ')).toBeLessThanOrEqual(3 * 4 + workers.killed)
    expect(api.refusedByBudget, told.join(', ')).toEqual([])
    expect(ends.slice(-3).map(({ code }) => code)).toEqual([0, 0, 0])
    // By itself a worker ends only where it finds no server at its start.
    const others = ends.slice(0, -3).filter(({ code, signal }) => code !== 4 && signal !== 'SIGKILL')
    expect(others.map(({ stderr }) => stderr.slice(-500))).toEqual([])
    // No worker met what nobody has thought of.
    const unknown = ends
      .flatMap(({ logs }) => logs)
      .filter(({ error_code: code }) => UNKNOWN.has(String(code)))
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
      console.info(`${api.requests()} requests, ${told.length} strikes, ${workers.killed} workers killed`)
    void rows
  })
})
