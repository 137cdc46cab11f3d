import Database from 'better-sqlite3'
import type { Running } from './processes.ts'

/** Stops a process (SIGSTOP) between two of its transactions: within one it would keep all others from the file. */
export async function halt(running: Running, mirror: string): Promise<void> {
  const connection = new Database(mirror, { timeout: 0 })
  for (;;) {
    running.killAll('SIGSTOP')
    try {
      connection.exec('BEGIN IMMEDIATE; ROLLBACK')
      connection.close()
      return
    } catch {
      running.killAll('SIGCONT')
      await new Promise((wake) => setTimeout(wake, 20))
    }
  }
}
