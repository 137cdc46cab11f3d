import path from 'node:path'
import { interpolate } from '../../config/config.ts'
import { parsePostgresAddress } from '../../config/postgres-address.ts'
import { JobError, UsageError } from '../../errors.ts'
import { daemons, livingOwners } from '../../store/core/leases.ts'
import { move } from '../../store/postgres/move.ts'
import { type Connection, runRule } from '../../store/sqlite/driver.ts'
import { translate } from '../../store/sqlite/errors.ts'
import { createLockWait } from '../../store/sqlite/runner.ts'
import { counted } from '../../text.ts'
import { openConnection, openMirrorFile } from '../file.ts'
import { connect } from '../postgres.ts'
import type { Runtime } from '../runtime.ts'

interface Options {
  from: string
  to: string
}

/** `move`: copies a mirror in a file into a schema of a PostgreSQL server. Needs no configuration. */
export async function run(runtime: Runtime, { from, to }: Options): Promise<number> {
  const { env, cwd, signal, stdout, stderr } = runtime
  // It may hold a password, so it is not repeated.
  const address = interpolate(to, env)
  if (address.problem !== null) throw new UsageError(`--to ${address.problem}`)
  const parsed = parsePostgresAddress(address.text)
  if ('problem' in parsed) throw new UsageError(`--to ${parsed.problem}`)
  const { authority, shown } = parsed.value
  const file = path.resolve(cwd, from)
  openMirrorFile(file).close()
  const report = (message: string) => stderr.write(`${message}\n`)
  const onTable = (table: string, rows: number, left: number) => {
    const full = left === 0 ? '' : `; a server has no room for ${counted(left, 'column')}: see _json`
    report(`${table}: ${counted(rows, 'row')}${full}`)
  }
  // The server first: a wrong address costs nothing.
  const postgres = { ...parsed.value, authority: authority === null ? null : path.resolve(cwd, authority) }
  const server = await connect(postgres, runtime, report)
  try {
    const { tables, rows } = await withFileAlone(runtime, file, (connection) =>
      move({ connection, server, signal, onTable }),
    )
    stdout.write(`moved: ${counted(tables, 'table')} with ${counted(rows, 'row')} to ${shown}\n`)
    report(`now put that address into "database" in the configuration; ${file} is unchanged`)
    return 0
  } finally {
    await server.close().catch(() => {})
  }
}

/** Runs `task` while nobody else writes the file. Throws MirrorError, and JobError if the file is in use. */
async function withFileAlone<T>(
  runtime: Runtime,
  file: string,
  task: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await openConnection(file, runtime)
  try {
    await createLockWait(file, runtime)(() => connection.exec('BEGIN IMMEDIATE'))
    assertUnused(connection, file, runtime)
    return await task(connection)
  } catch (error) {
    throw translate(file, error)
  } finally {
    if (connection.inTransaction) connection.exec('ROLLBACK')
    connection.close()
  }
}

/** Throws JobError if another process uses the file: what it reads now would be written there, and be missing on the server. */
function assertUnused(connection: Connection, file: string, { isAlive, now }: Runtime): void {
  const daemon = runRule(connection, daemons(isAlive, now())).find(({ running }) => running)
  const [owner] = runRule(connection, livingOwners(isAlive, now()))
  if (daemon === undefined && owner === undefined) return
  const by = daemon
    ? `"admin-mirror start" runs on it (process ${daemon.pid})`
    : `process ${owner} is working on it`
  throw new JobError('BUSY', `${file} is in use: ${by}. Stop it, and run the same command again`)
}
