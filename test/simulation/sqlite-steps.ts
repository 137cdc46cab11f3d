import Database from 'better-sqlite3'
import { actingProcess, asOnlooker, KilledError, type SimulatedProcess } from './process.ts'

type Connection = Database.Database
type Statement = Database.Statement

/** What looks on while the simulated processes use SQLite. */
export interface SqliteWatch {
  /** Whether somebody outside holds the mirror's write lock at this moment. */
  isLocked(connection: Connection): boolean
  onCommit(process: SimulatedProcess): void
}

let watch: SqliteWatch = { isLocked: () => false, onCommit: () => {} }

/** From now on this one is told. One history runs at a time. */
export function watchSqlite(next: SqliteWatch): void {
  watch = next
}

const METHODS = ['run', 'get', 'all'] as const

type Methods = Record<(typeof METHODS)[number], (this: Statement, ...values: unknown[]) => unknown>

/**
 * Makes each statement of each connection a step of the process that runs it, as long as the program runs. On the
 * prototypes, so that the connections that the program opens for itself are met too.
 */
export function hookSqlite(): void {
  const statements = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1')) as Methods
  for (const method of METHODS) {
    const original = statements[method]
    statements[method] = function hooked(this: Statement, ...values: unknown[]) {
      const process = actingProcess()
      if (!process) return original.apply(this, values)
      const connection = this.database
      enter(process, connection, this.source)
      const result = original.apply(this, values)
      if (this.source === 'COMMIT') leaveCommit(process)
      return result
    }
  }
  hookConnections()
}

function hookConnections(): void {
  const { exec, close } = Database.prototype
  Database.prototype.exec = function hooked(this: Connection, sql: string) {
    const process = actingProcess()
    if (process) enter(process, this, sql)
    return exec.call(this, sql)
  }
  Database.prototype.close = function hooked(this: Connection) {
    const process = actingProcess()
    process?.disown(this)
    close.call(this)
    // What a dead process would do after it is not done.
    if (process && !process.isAlive()) throw new KilledError('killed')
    return this
  }
}

function enter(process: SimulatedProcess, connection: Connection, sql: string): void {
  process.own(connection)
  if (!process.isAlive()) asOnlooker(() => connection.close())
  process.step(sql === 'COMMIT' ? 'before commit' : 'statement')
  if (sql === 'BEGIN IMMEDIATE' && watch.isLocked(connection))
    throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
}

function leaveCommit(process: SimulatedProcess): void {
  watch.onCommit(process)
  process.step('after commit')
}
