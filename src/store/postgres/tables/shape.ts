import {
  type Catalog,
  type KeyPaths,
  type KeyType,
  keyColumnNames,
  keyTypesOf,
} from '../../columns/catalog.ts'
import type { Column, ColumnType } from '../../columns/column.ts'
import { cutName, literal, POSTGRES_LIMITS, quoted } from '../sql.ts'

/** What the tables of a collection are made from. */
export interface TableShape {
  name: string
  keyColumns: readonly string[]
  keyTypes: readonly KeyType[]
  /** The discovered columns except the keys, the oldest first. */
  columns: readonly Column[]
}

/** A key column without a value yet is INTEGER: it can become TEXT at no cost. */
export function shapeOf(name: string, catalog: Catalog): TableShape {
  return {
    name,
    keyColumns: keyNames(catalog.keyPaths),
    keyTypes: keyTypesOf(catalog).map((type) => type ?? 'INTEGER'),
    columns: catalog.columns.filter(({ role }) => role !== 'key'),
  }
}

export function keyNames(keyPaths: KeyPaths): string[] {
  return keyColumnNames(keyPaths, POSTGRES_LIMITS)
}

export const SQL_TYPES: Record<ColumnType, string> = {
  INTEGER: 'bigint',
  REAL: 'double precision',
  TEXT: 'text',
}

/** The tables of a collection: what analysts query, the items as they were sent, superseded versions. */
export const KINDS = ['typed', 'raw', 'history'] as const

export type TableKind = (typeof KINDS)[number]

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

/** Our own columns around the key, and what they mean. */
const OWN: Record<TableKind, { [column: string]: [type: string, meaning: string] }> = {
  typed: {
    _first_seen_at: ['timestamptz', 'When the item was listed first.'],
    _changed_at: ['timestamptz', 'Since when it is as it is.'],
  },
  raw: {
    _json: ['text', 'The item exactly as it was sent.'],
    _first_seen_at: ['timestamptz', 'When the item was listed first.'],
    _changed_at: ['timestamptz', 'Since when it is as it is.'],
  },
  history: {
    _json: ['text', 'The version exactly as it was sent.'],
    _valid_from: ['timestamptz', 'Since when it was live.'],
    _valid_to: ['timestamptz', 'When it was superseded.'],
    _reason: ['text', 'changed, removed, out_of_scope'],
  },
}

const MEANING: Record<TableKind, string> = {
  typed: 'what the API listed as of sync_status.as_of or later, for all organizations.',
  raw: 'the same rows as they were sent.',
  history: 'superseded versions.',
}

/** All names of the relations of a collection, which share one namespace with those of users. */
export function namesOfRelations(name: string): string[] {
  const { keyIndex, endIndex } = historyIndexes(name)
  return [...KINDS.map((kind) => tableName(name, kind)), keyIndex, endIndex]
}

function historyIndexes(name: string) {
  return {
    keyIndex: `${cutName(name, '_history_by_key'.length)}_history_by_key`,
    endIndex: `${cutName(name, '_history_by_end'.length)}_history_by_end`,
  }
}

/** The statements that make the tables of a collection, with their comments. */
export function createSql(shape: TableShape): string {
  const keys = shape.keyColumns.map(quoted).join(', ')
  const history = quoted(tableName(shape.name, 'history'))
  const { keyIndex, endIndex } = historyIndexes(shape.name)
  return [
    ...KINDS.flatMap((kind) => tableSql(shape, kind)),
    `CREATE INDEX ${quoted(keyIndex)} ON ${history} ("_organization_id", ${keys}, "_valid_to")`,
    `CREATE INDEX ${quoted(endIndex)} ON ${history} ("_organization_id", "_valid_to")`,
  ].join(';\n')
}

function tableSql(shape: TableShape, kind: TableKind): string[] {
  const table = quoted(tableName(shape.name, kind))
  const own = Object.entries(OWN[kind])
  const keys = shape.keyColumns.map(
    (name, index) => `${quoted(name)} ${SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']} NOT NULL`,
  )
  const lines = [
    '"_organization_id" text NOT NULL',
    ...(kind === 'typed' ? [] : keys),
    ...own.map(([name, [type]]) => `${quoted(name)} ${type} NOT NULL`),
    ...(kind === 'typed' ? keys : []),
    ...(kind === 'typed' ? shape.columns.map(({ name, type }) => `${quoted(name)} ${SQL_TYPES[type]}`) : []),
    ...(kind === 'history'
      ? []
      : [`PRIMARY KEY (${['_organization_id', ...shape.keyColumns].map(quoted).join(', ')})`]),
  ]
  const meanings: [string, string][] = [
    ['_organization_id', 'See organizations.'],
    ...own.map(([name, [, meaning]]): [string, string] => [name, meaning]),
    ...shape.keyColumns.map((name): [string, string] => [name, 'A field of the key.']),
  ]
  return [
    `CREATE TABLE ${table} (\n  ${lines.join(',\n  ')}\n)`,
    `COMMENT ON TABLE ${table} IS ${literal(`${shape.name}: ${MEANING[kind]}`)}`,
    ...meanings.map(([name, meaning]) => `COMMENT ON COLUMN ${table}.${quoted(name)} IS ${literal(meaning)}`),
    ...(kind === 'typed' ? shape.columns.map((column) => commentSql(shape.name, column)) : []),
  ]
}

export function addColumnSql(table: string, column: Column): string {
  return `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(column.name)} ${SQL_TYPES[column.type]};\n${commentSql(table, column)}`
}

/** A path may have a megabyte. */
const LONGEST_COMMENT = 1000

function commentSql(table: string, { name, path, role }: Column): string {
  const shown = path.length > LONGEST_COMMENT ? `${path.slice(0, LONGEST_COMMENT)}...` : path
  const meaning = role === 'text' ? `${shown}, where its value does not fit the column beside it` : shown
  return `COMMENT ON COLUMN ${quoted(table)}.${quoted(name)} IS ${literal(meaning.toWellFormed().replaceAll('\0', '_'))}`
}
