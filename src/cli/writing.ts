import type { Config } from '../config/config.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import { type Connection, guarded, openForWriting } from '../store/sqlite/file/open.ts'
import { createLeases, type Leases } from '../store/sqlite/leases.ts'
import { makeConfigured } from '../store/sqlite/tables/configured.ts'
import { createLockWait, createTransact, type Patience, type Transact } from '../store/sqlite/transaction.ts'
import type { Runtime } from './runtime.ts'

/** The mirror open for a command that changes it and asks nobody else for anything. */
export interface Writing {
  connection: Connection
  leases: Leases
  transact: Transact
  patience: Patience
}

export async function whileWriting<T>(
  { database: file, collections }: Pick<Config, 'database' | 'collections'>,
  runtime: Runtime,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const { now, sleep, signal, pid, newToken } = runtime
  const patience = { now, sleep, signal, report: (message: string) => runtime.stderr.write(`${message}\n`) }
  const connection = await createLockWait(file, runtime)(() => openForWriting(file))
  try {
    const name = newLockName(pid, newToken)
    const leases = guarded(file, () => createLeases({ connection, file, name, now }))
    const write = createTransact({ connection, file, ...patience })
    const transact: Transact = (task, kind) =>
      write(() => {
        leases.assertAlive()
        return task()
      }, kind)
    try {
      await transact(() => makeConfigured(connection, collections))
      return await work({ connection, leases, transact, patience })
    } finally {
      leases.close()
    }
  } finally {
    connection.close()
  }
}
