import { type Connection, guarded, openForWriting } from '../mirror/database.ts'
import { newLockName } from '../mirror/lock-file.ts'
import { createOwners, type Owners } from '../mirror/owners.ts'
import { createLockWait, createTransact, type Transact } from '../mirror/transaction.ts'
import type { Runtime } from './runtime.ts'

/** The mirror open for a command that changes it and asks nobody else for anything. */
export interface Writing {
  connection: Connection
  owners: Owners
  transact: Transact
}

export async function whileWriting<T>(
  file: string,
  runtime: Runtime,
  work: (writing: Writing) => Promise<T>,
): Promise<T> {
  const { now, sleep, signal, pid, newToken } = runtime
  const connection = await createLockWait(file, runtime)(() => openForWriting(file))
  try {
    const name = newLockName(pid, newToken)
    const owners = guarded(file, () => createOwners({ connection, file, name, now }))
    const write = createTransact({ connection, file, now, sleep, signal })
    const transact: Transact = (task) =>
      write(() => {
        owners.assertAlive()
        return task()
      })
    try {
      return await work({ connection, owners, transact })
    } finally {
      owners.close()
    }
  } finally {
    connection.close()
  }
}
