import { systemCode } from '../../../errors.ts'
import { changesViewName, keyColumnNames, splitKey, tableName } from '../../columns/catalog.ts'
import { columnType, foldName, freeName, SQLITE_LIMITS } from '../../columns/column.ts'
import { eventKeyNames, SEQ } from '../../core/changes-view.ts'
import { quoted } from '../../core/sql.ts'
import { type ConfiguredCollection, knownCollections, loadArrayViews } from '../../core/tables.ts'
import { OF_THE_MIRROR } from '../../help-texts.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import { isViewSql } from '../tables/views.ts'

// What a copy holds: the tables and columns that README.md and `sync_help` promise to people, and nothing internal.

/** A table of the copy, as SQL. */
export interface CopiedTable {
  name: string
  declaration: string
  /** What follows INSERT INTO. */
  insert: string
  /** The columns of each. */
  indexes: string[][]
}

/** The name of the mirror while it is attached to the copy. */
export const MIRROR = 'mirror'

/** The tables of a copy. Call it while the copy is empty, with the mirror attached. */
export function tablesOfCopy(connection: Connection): CopiedTable[] {
  return [
    ...Object.entries(OF_THE_MIRROR).flatMap(([name, [, columns]]) => ownTable(connection, name, columns)),
    ...runRule(connection, knownCollections()).flatMap((known) => tablesOfCollection(connection, known)),
  ]
}

function ownTable(
  connection: Connection,
  name: string,
  wanted: Readonly<Record<string, string>>,
): CopiedTable[] {
  const columns = copiedColumns(connection, name).filter((column) => column.name in wanted)
  if (columns.length === 0) return []
  const list = columns.map((column) => quoted(column.name)).join(', ')
  const insert = `SELECT ${list} FROM ${MIRROR}.${quoted(name)}`
  const id = columns.filter((column) => column.name === 'id')
  return [{ name, declaration: declare(name, columns, id), insert, indexes: [] }]
}

function tablesOfCollection(connection: Connection, { name, key }: ConfiguredCollection): CopiedTable[] {
  const keys = keyColumnNames(splitKey(key))
  return [
    ...sameTable(connection, name, (columns) => columnsToIndex(columns, keys)),
    ...sameTable(connection, tableName(name, 'raw'), () => []),
    ...sameTable(connection, tableName(name, 'history'), () => [
      [ORGANIZATION_ID, ...keys, '_valid_to'],
      ['_valid_to'],
    ]),
    ...runRule(connection, loadArrayViews(SQLITE, name)).flatMap((view) =>
      tableOfView(connection, view.name, (columns) => {
        const isOfParent = columns.findIndex((column) => column.name === '_index') + 1
        const elements = columns.slice(isOfParent)
        return { primary: columns.slice(0, isOfParent), indexes: columnsToIndex(elements, []) }
      }),
    ),
    ...tableOfView(connection, changesViewName(name), () => ({
      primary: [],
      indexes: [[SEQ], ['at'], [ORGANIZATION_ID, ...eventKeyNames(keys)]],
    })),
  ]
}

/** A table with the same declaration as the mirror's: SQLite then copies its rows without parsing them. */
function sameTable(
  connection: Connection,
  name: string,
  toIndex: (columns: readonly CopiedColumn[]) => string[][],
): CopiedTable[] {
  const declaration = sqlOf(connection, 'table', name)
  if (declaration === null) return []
  const columns = copiedColumns(connection, name)
  const isPlain = columnCount(connection, name) === columns.length
  // A generated column that a user has added cannot be inserted.
  const list = columns.map((column) => quoted(column.name)).join(', ')
  const insert = isPlain
    ? `SELECT * FROM ${MIRROR}.${quoted(name)}`
    : `(${list}) SELECT ${list} FROM ${MIRROR}.${quoted(name)}`
  return [{ name, declaration, insert, indexes: toIndex(columns) }]
}

/** A table with the rows of a view; none if a user has put something else under its name, or it reads something that is no longer there. */
function tableOfView(
  connection: Connection,
  name: string,
  plan: (columns: readonly CopiedColumn[]) => Pick<CopiedTable, 'indexes'> & { primary: CopiedColumn[] },
): CopiedTable[] {
  const sql = sqlOf(connection, 'view', name)
  if (sql === null || !isViewSql(sql, name)) return []
  try {
    const columns = copiedColumns(connection, name)
    const { primary, indexes } = plan(columns)
    const insert = `SELECT * FROM ${MIRROR}.${quoted(name)}`
    return [{ name, declaration: declare(name, columns, primary), insert, indexes }]
  } catch (error) {
    if (systemCode(error) === 'SQLITE_ERROR') return []
    throw error
  }
}

function declare(name: string, columns: readonly CopiedColumn[], primary: readonly CopiedColumn[]): string {
  const lines = columns.map((column) => `${quoted(column.name)} ${columnType(column.type)}`)
  if (primary.length > 0)
    lines.push(`PRIMARY KEY (${primary.map((column) => quoted(column.name)).join(', ')})`)
  return `CREATE TABLE ${quoted(name)} (\n  ${lines.join(',\n  ')}\n) STRICT`
}

function sqlOf(connection: Connection, type: 'table' | 'view', name: string): string | null {
  const find = connection.prepare(`SELECT sql FROM ${MIRROR}.sqlite_schema WHERE type = ? AND name = ?`)
  return (find.pluck().get(type, name) as string | undefined) ?? null
}

/** INT is what SQLite calls the whole numbers of a view. */
function copiedColumns(connection: Connection, table: string): CopiedColumn[] {
  const sql = `SELECT name, iif(type = 'INT', 'INTEGER', type) AS type FROM pragma_table_info(?, '${MIRROR}')`
  return connection.prepare(sql).all(table) as CopiedColumn[]
}

function columnCount(connection: Connection, table: string): number {
  const sql = `SELECT count(*) FROM pragma_table_xinfo(?, '${MIRROR}')`
  return connection.prepare(sql).pluck().get(table) as number
}

/** References to other things, by which people group and join. */
const REFERENCE = /(^|_)(id|uuid|sku|ean|email)$/i

/** Times, by which people sort and cut. */
const TIME = /(_at|_on|(^|_)date)$/i

// Amounts, which people add up, and what they separate them by: within the index of a reference, so that the table is not read. People add up
// one currency at a time, so that comes first; the organization comes last.
const AMOUNT = /(^|_)(total|amount|price|cents|quantity|qty)(_|$)/i
const CURRENCY = /(^|_)currency$/i
const STATE = /(^|_)(state|status)$/i
const ORGANIZATION_ID = '_organization_id'

/** In elements of arrays: the name of what the reference beside it refers to. */
const NAME = /^(name|title)$/i

/** The most columns of each kind: every index adds to the time that a copy takes. */
const MOST_TIMES = 4
const MOST_REFERENCES = 4
const MOST_CURRENCIES = 1
const MOST_STATES = 1
const MOST_AMOUNTS = 3

export interface CopiedColumn {
  name: string
  type: string
}

/**
 * The columns of the indexes that pay in a typed table, chosen by name and type; without keys: in the elements of an array.
 */
function columnsToIndex(columns: readonly CopiedColumn[], keys: readonly string[]): string[][] {
  const fields = columns.filter(({ name }) => !name.startsWith('_') && !keys.includes(name))
  const named = (pattern: RegExp, most: number, isText: boolean | null = null) =>
    fields
      .filter(({ name, type }) => pattern.test(name) && (isText === null || (type === 'TEXT') === isText))
      .slice(0, most)
      .map(({ name }) => name)
  const isOfElements = keys.length === 0
  const added = [
    ...(isOfElements ? named(NAME, 1) : []),
    ...named(CURRENCY, MOST_CURRENCIES),
    ...named(STATE, MOST_STATES),
    ...named(AMOUNT, MOST_AMOUNTS, false),
    ORGANIZATION_ID,
  ]
  const own = columns.map(({ name }) => name).filter((name) => /^_(changed|first_seen)_at$/.test(name))
  return [
    ...[...named(TIME, MOST_TIMES, true), ...own].map((time) => [time]),
    ...named(REFERENCE, MOST_REFERENCES).map((reference) => [reference, ...added]),
  ]
}

/** The SQL of the indexes of one copy. No table's name begins with `_`. */
export function createIndexesSql(
  tables: readonly { readonly name: string; readonly indexes: readonly string[][] }[],
): string[] {
  const taken = new Set<string>()
  return tables.flatMap(({ name: table, indexes }) =>
    indexes.map((columns) => {
      // The API's names may hold `_by_`, too, so that two indexes would have one name.
      const name = freeName(`_${table}_by_${columns[0]}`, (one) => taken.has(foldName(one)), SQLITE_LIMITS)
      taken.add(foldName(name))
      return `CREATE INDEX ${quoted(name)} ON ${quoted(table)} (${columns.map(quoted).join(', ')})`
    }),
  )
}
