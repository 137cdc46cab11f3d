import { randomBytes } from 'node:crypto'
import { newLockName } from '../../src/store/sqlite/file/lock-file.ts'

/** A name as each process of the program gives its lock file. */
export function lockName(): string {
  return newLockName(process.pid, () => randomBytes(16).toString('hex'))
}
