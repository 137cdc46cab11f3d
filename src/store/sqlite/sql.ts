import type Database from 'better-sqlite3'

export type Connection = Database.Database

/** A name as SQLite reads it, whatever characters it has. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A parameter for statements that run at least once per page. Where no unique index settles the plan, SQLite
 * compiles a statement again for each value bound to a bare `?`, which takes ten times as long as the query.
 * A CAST prevents that.
 */
export function castParameter(type: 'INTEGER' | 'TEXT', parameter = '?'): string {
  return `CAST(${parameter} AS ${type})`
}
