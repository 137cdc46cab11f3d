import { setTimeout as sleep } from 'node:timers/promises'
import { serveParent } from './child-process.ts'
import type { Connection } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import { openForWriting } from './file/open-for-writing.ts'
import { announceMaintenance, createLeases, maintenanceUnderWay, withdrawMaintenance } from './leases.ts'
import { type ChildTask, TASKS } from './maintenance.ts'
import { withoutForeignKeys } from './tables/alter.ts'
import { createLockWait } from './transaction.ts'

// The process that maintenance.ts starts.

/** How often to check whether another process has ended its work. */
const ANNOUNCE_EVERY_MS = 50

type Run = (connection: Connection, argument: unknown, onRows: (rows: number) => void) => unknown

/** Announces this process in the mirror while the task runs. */
async function work(
  { file, name, argument, what }: ChildTask,
  onRows: (rows: number) => void,
): Promise<unknown> {
  const owner = `${process.pid}-${crypto.randomUUID().slice(-12)}`
  const patience = { now: Date.now, sleep: (ms: number) => sleep(ms), signal: new AbortController().signal }
  const connection = await createLockWait(file, patience)(() => openForWriting(file))
  const wait = createLockWait(file, patience, () => maintenanceUnderWay(connection, owner))
  const transact = <T>(task: () => T) => wait(() => connection.transaction(task).immediate())
  const leases = translatingErrors(file, () => createLeases(connection, owner, Date.now))
  try {
    while (!(await transact(() => announceMaintenance(connection, { owner, what }))))
      await sleep(ANNOUNCE_EVERY_MS)
    // Sorted in memory: a container may have no folder for temporary files.
    connection.pragma('temp_store = MEMORY')
    // The parent's time is that of its request, and other processes may have written since.
    const run = () => (TASKS[name] as Run)(connection, { ...argument, at: new Date().toISOString() }, onRows)
    const attempt = () => connection.transaction(run).immediate()
    const result = await wait(() =>
      name === 'alterTables' ? withoutForeignKeys(connection, attempt) : attempt(),
    )
    await transact(() => withdrawMaintenance(connection))
    return result
  } finally {
    leases.close()
    connection.close()
  }
}

await serveParent(import.meta.url, work)
