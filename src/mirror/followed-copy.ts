import type { Connection } from './database.ts'
import { indexOn, withName, withType } from './declaration.ts'
import { declarationOf } from './reshape.ts'
import { quoted } from './sql.ts'
import type { KeyType } from './tables.ts'

// A copy of a table under way. Its rows have the same row ids, and it holds all rows of the table up to its own highest
// row id: so how far it has come needs to stand nowhere else. What changes in those rows is carried over by triggers of
// the table. They are the sign of a copy that is right as far as it goes; one that no trigger follows is refuse.

/** The table that is copied, and what its key columns shall be. */
export interface Original {
  table: string
  keyColumns: readonly string[]
  from: readonly KeyType[]
  to: readonly KeyType[]
}

const EVENTS = ['INSERT', 'UPDATE', 'DELETE'] as const

/** The name under which the copy of a table, or of an index, stands until they exchange what they hold. */
export function nameOfCopy(name: string): string {
  return `_new_${name}`
}

export function hasCopy(connection: Connection, table: string): boolean {
  return declarationOf(connection, nameOfCopy(table)) !== undefined
}

export function isFollowed(connection: Connection, table: string): boolean {
  const sql = `SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ? AND name IN (?, ?, ?)`
  return (
    connection
      .prepare(sql)
      .pluck()
      .get(table, ...triggersOf(table)) === EVENTS.length
  )
}

function triggersOf(table: string): string[] {
  return EVENTS.map((event) => `${nameOfCopy(table)}_${event.toLowerCase()}`)
}

/** Whether the copy is declared as the table is now, but for the types: a column may have been added since it was begun. */
export function isAsDeclared(connection: Connection, original: Original): boolean {
  return declarationOf(connection, nameOfCopy(original.table)) === declarationOfCopy(connection, original)
}

function declarationOfCopy(connection: Connection, { table, keyColumns, from, to }: Original): string {
  let sql: string | null = withName(declarationOf(connection, table) ?? '', nameOfCopy(table))
  for (const [index, column] of keyColumns.entries()) {
    const [before = 'INTEGER', after = 'INTEGER'] = [from[index], to[index]]
    if (sql !== null && before !== after) sql = withType(sql, column, before, after)
  }
  if (sql === null) throw new Error(`the declaration of table ${table} is not one of ours`)
  return sql
}

/** An empty copy, its indexes, and the triggers that follow the table. */
export function createCopy(connection: Connection, original: Original): void {
  const { table } = original
  const copy = nameOfCopy(table)
  connection.exec(declarationOfCopy(connection, original))
  for (const { name, sql } of declaredIndexes(connection, table)) {
    const copied = indexOn(sql, nameOfCopy(name), copy)
    if (copied !== null) connection.exec(copied)
  }
  const { columns, values } = columnsOf(connection, original, 'new.')
  const isCopied = (row: 'new' | 'old') => `${row}._rowid_ <= (SELECT max(_rowid_) FROM ${quoted(copy)})`
  const remove = `DELETE FROM ${quoted(copy)} WHERE _rowid_ = old._rowid_;`
  const insert = `INSERT INTO ${quoted(copy)} (${columns}) SELECT ${values} WHERE ${isCopied('new')};`
  // A row whose old version was the copy's last is not put back: it is the next one to be copied then.
  const body = { INSERT: insert, UPDATE: remove + insert, DELETE: remove }
  for (const [index, event] of EVENTS.entries()) {
    const trigger = quoted(triggersOf(table)[index] ?? '')
    const when = isCopied(event === 'INSERT' ? 'new' : 'old')
    connection.exec(
      `CREATE TRIGGER ${trigger} AFTER ${event} ON ${quoted(table)} WHEN ${when} BEGIN ${body[event]} END`,
    )
  }
}

/** Copies up to so many rows, and returns how many: fewer when there are no more. */
export function copyRows(connection: Connection, original: Original, rows: number): number {
  const { columns, values } = columnsOf(connection, original, '')
  const copy = connection.prepare(`
    INSERT INTO ${quoted(nameOfCopy(original.table))} (${columns})
    SELECT ${values}
    FROM ${quoted(original.table)}
    WHERE _rowid_ > (SELECT coalesce(max(_rowid_), 0) FROM ${quoted(nameOfCopy(original.table))})
    ORDER BY _rowid_
    LIMIT ?
  `)
  return copy.run(rows).changes
}

/** The row id and all columns, and what is read for them. `_rowid_` is the one name of it that no field can take. */
function columnsOf(connection: Connection, { table, keyColumns, to }: Original, row: '' | 'new.') {
  const names = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
  const value = (name: string) => {
    const index = keyColumns.indexOf(name)
    // STRICT refuses an integer in a TEXT column without the cast.
    return index === -1 ? `${row}${quoted(name)}` : `CAST(${row}${quoted(name)} AS ${to[index]})`
  }
  return {
    columns: ['_rowid_', ...names.map(quoted)].join(', '),
    values: [`${row}_rowid_`, ...names.map(value)].join(', '),
  }
}

/** The indexes of a table that somebody declared: ours, and those that users made. Not those of its primary key. */
export function declaredIndexes(connection: Connection, table: string): { name: string; sql: string }[] {
  const sql = `SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL`
  return connection.prepare(sql).all(table) as { name: string; sql: string }[]
}

export function stopFollowing(connection: Connection, table: string): void {
  for (const trigger of triggersOf(table)) connection.exec(`DROP TRIGGER IF EXISTS ${quoted(trigger)}`)
}

/** Removes up to so many rows of a copy that is of no use, the last ones with the table itself; returns how many. */
export function takeDown(connection: Connection, table: string, rows: number): number {
  // First, and in the same transaction: what has lost rows must never pass for a copy.
  stopFollowing(connection, table)
  if (!hasCopy(connection, table)) return 0
  const copy = quoted(nameOfCopy(table))
  const remove = connection.prepare(
    `DELETE FROM ${copy} WHERE _rowid_ IN (SELECT _rowid_ FROM ${copy} ORDER BY _rowid_ LIMIT ?)`,
  )
  const { changes } = remove.run(rows)
  if (changes < rows) connection.exec(`DROP TABLE ${copy}`)
  return changes
}
