import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { MirrorError } from '../../errors.ts'
import { openForWriting, translatingErrors } from './file/open.ts'
import { announceMaintenance, createLeases, maintenanceUnderWay, withdrawMaintenance } from './leases.ts'
import { type ChildMessage, type ChildTask, TASKS } from './maintenance.ts'
import type { Connection } from './sql.ts'
import { withoutForeignKeys } from './tables/rebuild-table.ts'
import { createLockWait } from './transaction.ts'

// The process that maintenance.ts starts. Its main thread only listens, since a thread inside SQLite cannot,
// and the process must end at once when its parent does.

/** How often to check whether another process has ended its work. */
const LOOK_EVERY_MS = 50

function listen(): void {
  // A diagnostic report of Node would hold the environment, and so the tokens.
  if (process.report) process.report.excludeEnv = true
  process.on('disconnect', die)
  if (!process.connected) die()
  // A terminal or a service manager signals this process too; its parent decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.once('message', (task: ChildTask) => {
    const thread = new Worker(new URL(import.meta.url), { workerData: task })
    thread.on('message', send)
    thread.on('error', (error) => send(failed(error)))
  })
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function send(message: ChildMessage): void {
  process.send?.(message, () => {
    if (message.kind !== 'rows') process.exit(0)
  })
}

function failed(error: unknown): ChildMessage {
  const message = error instanceof Error ? error.message : String(error)
  return { kind: 'failed', isOfMirror: error instanceof MirrorError, message }
}

function post(message: ChildMessage): void {
  parentPort?.postMessage(message, [])
}

type Run = (connection: Connection, argument: unknown, onRows: (rows: number) => void) => unknown

/** Announces this process in the mirror while the task runs. */
async function work({ file, name, argument, what }: ChildTask): Promise<ChildMessage> {
  const owner = `${process.pid}-${crypto.randomUUID().slice(-12)}`
  const patience = { now: Date.now, sleep: (ms: number) => sleep(ms), signal: new AbortController().signal }
  const connection = await createLockWait(file, patience)(() => openForWriting(file))
  const wait = createLockWait(file, patience, () => maintenanceUnderWay(connection, owner))
  const transact = <T>(task: () => T) => wait(() => connection.transaction(task).immediate())
  const leases = translatingErrors(file, () => createLeases({ connection, file, name: owner, now: Date.now }))
  try {
    while (!(await transact(() => announceMaintenance(connection, { owner, what }))))
      await sleep(LOOK_EVERY_MS)
    // Sorted in memory: a container may have no folder for temporary files.
    connection.pragma('temp_store = MEMORY')
    const { run, kind } = TASKS[name]
    const inOne = connection.transaction(() =>
      // The parent's time is that of its request, and other processes may have written since.
      (run as Run)(connection, { ...argument, at: new Date().toISOString() }, (rows) =>
        post({ kind: 'rows', rows }),
      ),
    )
    const attempt = () => inOne.immediate()
    const result = await wait(() =>
      kind === 'rebuilding' ? withoutForeignKeys(connection, attempt) : attempt(),
    )
    await transact(() => withdrawMaintenance(connection))
    return { kind: 'done', result }
  } finally {
    leases.close()
    connection.close()
  }
}

if (isMainThread) listen()
else post(await work(workerData as ChildTask).catch(failed))
