import Database from 'better-sqlite3'
import type { Surroundings } from './ground.ts'
import type { Mistake } from './planted.ts'
import { actingProcess, asOnlooker, KilledError, UNSEEN } from './process.ts'

type Connection = Database.Database
type Statement = Database.Statement

interface SqliteWatch extends Pick<Surroundings, 'onCommit'> {
  isLocked(connection: Connection): boolean
}

let watch: SqliteWatch = { isLocked: () => false, onCommit: () => {} }

/** From now on this one is told what the simulated processes do. One history runs at a time. */
export function watchSqlite(next: SqliteWatch): void {
  watch = next
}

/** What the program is told of a statement that meets no row. */
const NO_ROW = { run: { changes: 0, lastInsertRowid: 0 }, get: undefined, all: [] } as const

/** Connections that have written since their last transaction. */
const written = new WeakSet<Connection>()

type Method = keyof typeof NO_ROW
type Methods = Record<Method, (this: Statement, ...values: unknown[]) => unknown>

/**
 * Makes each statement of each connection a step of the process that runs it, as long as the program runs. On the
 * prototypes, so that the connections that the program opens for itself are met too. `planted`: a mistake.
 */
export function hookSqlite(planted: Mistake['statement']): void {
  const statements = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1')) as Methods
  for (const method of Object.keys(NO_ROW) as Method[]) {
    const original = statements[method]
    statements[method] = function hooked(this: Statement, ...values: unknown[]) {
      const process = actingProcess()
      if (!process) return original.apply(this, values)
      const { database, source: sql } = this
      enter(database, sql)
      const run = planted ? planted({ sql, values }, process) : { values }
      const result = run ? original.apply(this, [...run.values]) : NO_ROW[method]
      if (writes(this, result)) written.add(database)
      if (sql === 'COMMIT') {
        if (written.delete(database)) watch.onCommit(process)
        process.step('after commit')
      }
      return result
    }
  }
  const { exec, close } = Database.prototype
  Database.prototype.exec = function hooked(this: Connection, sql: string) {
    enter(this, sql)
    written.add(this)
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

function enter(connection: Connection, sql: string): void {
  const process = actingProcess()
  if (!process) return
  process.own(connection)
  if (!process.isAlive()) asOnlooker(() => connection.close())
  process.step(sql === 'COMMIT' ? 'before commit' : 'statement')
  if (sql === 'BEGIN IMMEDIATE' && watch.isLocked(connection))
    throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
}

function writes({ readonly, source }: Statement, result: unknown): boolean {
  if (readonly || source === 'BEGIN IMMEDIATE' || UNSEEN.test(source)) return false
  return (result as { changes?: unknown } | undefined)?.changes !== 0
}
