import path from 'node:path'
import { type PostgresSettings, parsePostgresAddress } from '../../config/postgres-address.ts'
import { interpolate } from '../../config/variables.ts'
import { JobError, UsageError } from '../../errors.ts'
import { alone } from '../../store/postgres/leases.ts'
import { type Moved, move } from '../../store/postgres/move/move.ts'
import type { Connection } from '../../store/sqlite/driver.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { translate, translatingErrors } from '../../store/sqlite/file/open.ts'
import {
  announceMaintenance,
  createLeases,
  isOwnerAlive,
  maintenanceUnderWay,
  readDaemons,
  withdrawMaintenance,
} from '../../store/sqlite/leases.ts'
import { createLockWait, createTransact } from '../../store/sqlite/transaction.ts'
import { counted, printable } from '../../text.ts'
import { exitCodeIfStopped } from '../exit-code.ts'
import { assertMirror } from '../file/mirror.ts'
import { openConnection } from '../file/open.ts'
import { connect } from '../postgres/connect.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options {
  from: string
  to: string
}

/** `move`: copies a mirror in a file into a schema of a PostgreSQL server. Needs no configuration. */
export async function run(runtime: Runtime, _globals: Globals, { from, to }: Options): Promise<number> {
  if (from === '') throw new UsageError('--from: name the file of a mirror')
  const { env, cwd } = runtime
  // It may hold a password, so it is not repeated.
  const address = interpolate(to, env)
  if (!('value' in address)) throw new UsageError(`--to ${address.problem}`)
  const parsed = parsePostgresAddress(address.value)
  if ('problem' in parsed) throw new UsageError(`--to ${parsed.problem}`)
  const { authority } = parsed.value
  const postgres = { ...parsed.value, authority: authority === null ? null : path.resolve(cwd, authority) }
  const file = path.resolve(cwd, from)
  assertMirror(file)
  return moveToPostgres(runtime, file, postgres)
}

const WHAT = 'it is being moved to a PostgreSQL server'

/** Moves the mirror. Other processes that want to write the file wait meanwhile, and say for what. Returns the exit code. */
async function moveToPostgres(runtime: Runtime, file: string, to: PostgresSettings): Promise<number> {
  const report = (message: string) => runtime.stderr.write(`${message}\n`)
  // The server first: a wrong address costs nothing.
  const server = await connect(to, runtime, report)
  const { signal } = runtime
  try {
    const moved = await alone(server, 'move', () =>
      withFileAlone(runtime, file, report, (connection) =>
        move({ connection, server, signal, ...progressReports(runtime) }),
      ),
    )
    if (!moved) throw new JobError('BUSY', `another process is moving a mirror to ${to.shown} right now`)
    return reportEnd(runtime, file, to, moved)
  } catch (error) {
    return exitCodeIfStopped(error, runtime)
  } finally {
    await server.close()
  }
}

/** Runs `task` while nobody else writes the file. Throws MirrorError, and JobError if the file is in use. */
async function withFileAlone<T>(
  runtime: Runtime,
  file: string,
  report: (message: string) => void,
  task: (connection: Connection) => Promise<T>,
): Promise<T> {
  const log = { info: (_: object, message: string) => report(message), warn: () => {} }
  const { connection, patience } = await openConnection(file, runtime, log)
  const name = newLockName(runtime.pid, runtime.randomHex)
  const leases = translatingErrors(file, () => createLeases(connection, name, runtime.now))
  const transact = createTransact({ connection, ...patience })
  try {
    const isAlone = await transact(() => announceMaintenance(connection, { owner: name, what: WHAT }))
    if (!isAlone) throw inUse(file, maintenanceUnderWay(connection) ?? 'another process is at work on it')
    try {
      await createLockWait(file, patience)(() => connection.exec('BEGIN IMMEDIATE'))
      assertUnused(connection, file)
      return await task(connection)
    } catch (error) {
      throw translate(file, error)
    } finally {
      if (connection.inTransaction) connection.exec('ROLLBACK')
      await transact(() => withdrawMaintenance(connection))
    }
  } finally {
    leases.close()
    connection.close()
  }
}

/** Throws JobError if another process uses the file: what it reads now would be written there, and be missing on the server. */
function assertUnused(connection: Connection, file: string): void {
  const daemon = readDaemons(connection, file).find(({ running }) => running === true)
  if (daemon) throw inUse(file, `"admin-mirror start" runs on it (process ${daemon.pid})`)
  const owners = connection.prepare('SELECT DISTINCT owner FROM sync_jobs WHERE owner IS NOT NULL').pluck()
  const owner = (owners.all() as string[]).find((one) => isOwnerAlive(file, one) !== false)
  if (owner !== undefined) throw inUse(file, `process ${printable(owner, 40)} is working on it`)
}

function inUse(file: string, by: string): JobError {
  return new JobError('BUSY', `${file} is in use: ${by}. Stop it, and run the same command again`)
}

/** How often the progress of a long table is reported. Milliseconds. */
const PROGRESS_EVERY_MS = 5000

function progressReports({ stderr, now }: Runtime) {
  let reportedAt = now()
  return {
    onTable: (table: string, rows: number, how: 'copied' | 'as it was') => {
      stderr.write(
        `${table}: ${counted(rows, 'row')}, ${how === 'copied' ? 'copied and compared' : 'compared'}\n`,
      )
      reportedAt = now()
    },
    onRows: (table: string, rows: number) => {
      if (now() - reportedAt < PROGRESS_EVERY_MS) return
      stderr.write(`${table}: ${counted(rows, 'row')} so far\n`)
      reportedAt = now()
    },
  }
}

/** Returns the exit code. */
function reportEnd(
  { stdout, stderr }: Runtime,
  file: string,
  { shown }: PostgresSettings,
  { tables, rows, wasDone, different, notices }: Moved,
): number {
  for (const notice of notices) stderr.write(`${notice}\n`)
  if (different.length > 0) {
    stderr.write(
      `${file} was moved to ${shown} before, and nothing was written now: ${different.join(', ')} ${different.length === 1 ? 'differs' : 'differ'}, since one of the two has changed meanwhile\n`,
    )
    return 5
  }
  const all = `${counted(tables, 'table')} with ${counted(rows, 'row')} are equal in ${file} and ${shown}`
  stdout.write(wasDone ? `moved before; ${all}\n` : `moved: ${all}\n`)
  if (!wasDone)
    stderr.write(
      `now put that address into "database" in the configuration; ${file} is unchanged and no longer needed\n`,
    )
  return 0
}
