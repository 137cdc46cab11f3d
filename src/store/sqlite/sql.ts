import type Database from 'better-sqlite3'

export type Connection = Database.Database

export { quoted } from '../core/sql.ts'

/**
 * A parameter for statements that run at least once per page. Where no unique index settles the plan, SQLite
 * compiles a statement again for each value bound to a bare `?`, which takes ten times as long as the query.
 * A CAST prevents that.
 */
export function castParameter(type: 'INTEGER' | 'TEXT', parameter = '?'): string {
  return `CAST(${parameter} AS ${type})`
}
