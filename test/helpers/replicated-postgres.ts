import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { atFreePort } from './postgres-server.ts'

/** A server and its standby, each with a port of its own on loopback. */
export interface ReplicatedServer {
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

export const canReplicate = programs() !== null

export async function startReplicated(): Promise<ReplicatedServer> {
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
