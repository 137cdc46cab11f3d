import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Client } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openReader } from '../../helpers/postgres.ts'
import { atFreePort } from '../../helpers/postgres-server.ts'
import { startProxy } from '../../helpers/proxy.ts'
import { organization } from '../../helpers/workspace.ts'
import { startCrashApi } from './crash-api.ts'

// The machine of the server is lost, and its standby takes over, behind one address.

const tokens = ['1|Secret-of-token-1-x7Qp93LmZt5VbRw', '2|Secret-of-token-2-x7Qp93LmZt5VbRw']
const organizations = Array.from({ length: 6 }, (_, index) =>
  organization(`org${index}`, index + 1, { token: tokens[index % 2] }),
)

/** A server and its standby, each with a port of its own on loopback. */
interface ReplicatedServer {
  /** Of the primary, with a superuser. */
  url: string
  primary: number
  standby: number
  /** Each commit waits for the standby from now on. */
  waitForStandby(): Promise<void>
  /** What is committed from now on does not reach the standby. */
  cutReplication(): Promise<void>
  /** The primary crashes, and the standby becomes the server. */
  failOver(): void
}

const VERSIONS = '/usr/lib/postgresql'

/** Where Debian's PostgreSQL has its programs; null where there are none. */
function programs(): string | null {
  const versions = fs.existsSync(VERSIONS)
    ? fs.readdirSync(VERSIONS).filter((name) => Number(name) >= 15)
    : []
  const folders = versions.map((version) => path.join(VERSIONS, version, 'bin'))
  return folders.find((folder) => fs.existsSync(path.join(folder, 'pg_basebackup'))) ?? null
}

async function ask(port: number, ...statements: readonly string[]): Promise<void> {
  const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

const canReplicate = programs() !== null

async function startReplicated(): Promise<ReplicatedServer> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-replicated-'))
  // As root the servers run under a user of their own.
  fs.chmodSync(folder, 0o777)
  const data = (name: string) => path.join(folder, name)

  function run(program: string, args: readonly string[]): void {
    const command = [path.join(programs() ?? '', program), ...args]
    const asUser = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--', ...command] : command
    const [file = '', ...rest] = asUser
    execFileSync(file, rest, { stdio: 'ignore', cwd: folder })
  }

  function start(name: string, port: number): number {
    const settings = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off`
    run('pg_ctl', ['-D', data(name), '-l', `${data(name)}.log`, '-w', '-o', settings, 'start'])
    return port
  }

  onTestFinished(() => {
    for (const name of ['primary', 'standby'])
      try {
        run('pg_ctl', ['-D', data(name), '-m', 'immediate', 'stop'])
      } catch {
        // It has crashed.
      }
    fs.rmSync(folder, { recursive: true, force: true })
  })
  run('initdb', ['-D', data('primary'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '-N'])
  const primary = await atFreePort((port) => start('primary', port))
  const source = ['-h', '127.0.0.1', '-p', String(primary), '-U', 'postgres']
  run('pg_basebackup', [...source, '-D', data('standby'), '-R', '-X', 'stream', '-c', 'fast', '-N'])
  const standby = await atFreePort((port) => start('standby', port))
  return {
    url: `postgres://postgres:none@127.0.0.1:${primary}/postgres`,
    primary,
    standby,
    waitForStandby: () =>
      ask(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()'),
    cutReplication: () =>
      ask(standby, "ALTER SYSTEM SET primary_conninfo = ''", 'SELECT pg_reload_conf()', 'SELECT pg_sleep(1)'),
    failOver() {
      run('pg_ctl', ['-D', data('primary'), '-m', 'immediate', 'stop'])
      run('pg_ctl', ['-D', data('standby'), '-w', 'promote'])
    },
  }
}

async function createScene() {
  const server = await startReplicated()
  const proxy = await startProxy(server.primary)
  const api = await startCrashApi([], 0)
  const url = new URL(server.url)
  url.port = String(proxy.port)
  const settings = { organizations, schedule: '* * * * * *', removals: { brakePercent: 0 } }
  const mirror = onPostgres({ url: url.href }, api.url, settings)
  const workers = [mirror.start(['start']), mirror.start(['start'])]
  const failOver = () => {
    server.failOver()
    proxy.target(server.standby)
    proxy.cut()
  }
  const at = (port: number) => openReader({ ...mirror.address, port })
  return { server, api, mirror, workers, failOver, at }
}

type Scene = Awaited<ReturnType<typeof createScene>>

/** Lists that are other in the mirror than the API shows them, after as many syncs as a list at rest needs. */
async function differences({ api, mirror }: Scene): Promise<string[]> {
  api.rest()
  for (const token of tokens) api.revoke(token, false)
  expect(await mirror.run(['resume'])).toMatchObject({ code: 0 })
  for (let turn = 0; turn < 3; turn++) {
    const { code, stderr } = await mirror.run(['sync', '--wait', '--accept-removals'])
    expect(code, stderr).toBe(0)
  }
  const rows = await openReader(mirror.address)
  const different: string[] = []
  for (const { id, name } of organizations) {
    const items = await rows('SELECT _json FROM orders_raw WHERE _organization_id = $1 ORDER BY id', id)
    const truth = api.listOf(id, 'orders').map((item) => JSON.stringify(item))
    if (items.map(({ _json: json }) => String(json)).join() !== truth.join()) different.push(name)
  }
  return different
}

async function stop({ workers }: Scene): Promise<void> {
  for (const worker of workers) worker.killAll('SIGTERM')
  const ends = await Promise.all(workers.map(({ ended }) => ended))
  expect(ends.map(({ code }) => code)).toEqual([0, 0])
  const unknown = ends
    .flatMap(({ logs }) => logs)
    .filter((line) => line.error_code === 'INTERNAL' || line.event === 'run_crashed')
  expect(unknown.slice(0, 3)).toEqual([])
}

const HELD = 'SELECT count(*)::int AS held FROM organizations WHERE held_since IS NOT NULL'
/** For a hang. */
const SOON = { timeout: 60_000 }

describe.skipIf(!canReplicate)('a standby takes over', { timeout: 180_000 }, () => {
  it('and nothing is lost where commits wait for it: the workers go on, and no hold is forgotten', async () => {
    const scene = await createScene()
    const { server, api, workers, failOver, at } = scene
    await server.waitForStandby()
    await workers[0]?.log(({ event }) => event === 'run_finished')
    api.revoke(tokens[0] ?? '', true)
    const primary = await at(server.primary)
    await expect.poll(() => primary(HELD), SOON).toEqual([{ held: 3 }])

    failOver()
    const before = api.requests()
    const refused = api.timesOf(tokens[0] ?? '').length
    // The other lists are read again and again.
    await expect.poll(() => api.requests(), SOON).toBeGreaterThan(before + 30)

    expect(api.timesOf(tokens[0] ?? '')).toHaveLength(refused)
    await stop(scene)
    expect(await differences(scene)).toEqual([])
  })

  it('and what it had not got is read again, where commits do not wait for it', async () => {
    const scene = await createScene()
    const { server, api, workers, failOver, at } = scene
    await workers[0]?.log(({ event }) => event === 'run_finished')
    await server.cutReplication()
    const receivers = 'SELECT count(*)::int AS receivers FROM pg_stat_wal_receiver'
    const behind = await at(server.standby)
    await expect.poll(() => behind(receivers), SOON).toEqual([{ receivers: 0 }])
    api.revoke(tokens[0] ?? '', true)
    const primary = await at(server.primary)
    await expect.poll(() => primary(HELD), SOON).toEqual([{ held: 3 }])

    failOver()
    const standby = await at(server.standby)
    const before = api.requests()
    const refused = api.timesOf(tokens[0] ?? '').length
    const lost = await standby(HELD)
    await expect.poll(() => standby(HELD), SOON).toEqual([{ held: 3 }])

    expect(lost).toEqual([{ held: 0 }])
    expect(api.requests()).toBeGreaterThan(before)
    // The lost hold is written again by the first answer.
    expect(api.timesOf(tokens[0] ?? '').length - refused).toBeLessThanOrEqual(2)
    await stop(scene)
    expect(await differences(scene)).toEqual([])
  })
})
