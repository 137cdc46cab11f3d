import type { PostgresSettings } from '../../config/postgres-address.ts'
import { InterruptedError, JobError } from '../../errors.ts'
import { createLeases as createServerLeases } from '../../store/postgres/leases.ts'
import { type Moved, move } from '../../store/postgres/move/move.ts'
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
import type { Connection } from '../../store/sqlite/sql.ts'
import { createLockWait } from '../../store/sqlite/transaction.ts'
import { counted, printable } from '../../text.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { openMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { connect, workerName } from './open.ts'

const WHAT = 'it is moved to a PostgreSQL server'

/** `move`. Other processes that want to write the file wait, and say for what. Returns the exit code. */
export async function moveToPostgres(runtime: Runtime, file: string, to: PostgresSettings): Promise<number> {
  const { now, signal, stderr, pid, newToken } = runtime
  const report = (message: string) => stderr.write(`${message}\n`)
  // The server first: a wrong address costs nothing.
  const server = await connect(to, runtime, report)
  try {
    const serverLeases = await createServerLeases(server, workerName(runtime))
    try {
      if (!(await serverLeases.lock('move', '')))
        throw new JobError('BUSY', `another process moves a mirror to ${to.shown} right now`)
      const { connection, transact, patience } = await openMirror(file, runtime, report)
      const name = newLockName(pid, newToken)
      const leases = translatingErrors(file, () => createLeases({ connection, file, name, now }))
      try {
        const isAlone = await transact(() => announceMaintenance(connection, { owner: name, what: WHAT }))
        if (!isAlone) throw inUse(file, maintenanceUnderWay(connection) ?? 'another process is at work on it')
        try {
          const alone = createLockWait(file, patience)
          await alone(() => connection.exec('BEGIN IMMEDIATE'))
          assertUnused(connection, file)
          return reportEnd(
            runtime,
            file,
            to,
            await move({ connection, server, signal, ...progressReports(runtime) }),
          )
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
    } finally {
      await serverLeases.close()
    }
  } catch (error) {
    if (!(error instanceof InterruptedError) || !signal.aborted) throw error
    report(error.message)
    return exitCodeOfStop(signal)
  } finally {
    await server.close()
  }
}

/** What another process reads now would be written into the file, and be missing on the server. */
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
const REPORT_EVERY_MS = 5000

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
      if (now() - reportedAt < REPORT_EVERY_MS) return
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
      `${file} was moved to ${shown} before, and nothing was written now: ${different.join(', ')} ${different.length === 1 ? 'differs' : 'differ'}, since one of both has changed meanwhile\n`,
    )
    return 5
  }
  const all = `${counted(tables, 'table')} with ${counted(rows, 'row')} are equal in ${file} and ${shown}`
  stdout.write(wasDone ? `moved before; ${all}\n` : `moved: ${all}\n`)
  if (!wasDone)
    stderr.write(
      `now name it as "database" in the configuration; ${file} is as it was, and no longer needed\n`,
    )
  return 0
}
