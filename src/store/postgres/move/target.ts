import { MirrorError } from '../../../errors.ts'
import { tablesSql } from '../../core/declarations.ts'
import { KINDS, tableName } from '../../core/sql.ts'
import { collectionNames } from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { advisoryLocks, lockKey } from '../leases.ts'
import { LATEST_VERSION, MOVING, migrate, readSettings } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { dropCollection } from '../tables/configured.ts'
import { changesViewSql } from '../tables/shape.ts'
import { viewSql } from '../tables/view.ts'
import type { MovedCollection } from './collections.ts'
import { COUNTERS, OWN_TABLES } from './own-tables.ts'
import type { Digest } from './values.ts'

// The schema while a mirror is moved into it. Its version then says `moving`, so that no worker reads or writes it, and
// `sync_settings` says which tables are whole.

/** What the schema says of the move into it. */
export interface Mark {
  /** Tells one mirror from another. */
  source: string
  /** Tells whether the tables are still to be made in the same way. */
  plan: string
  /** The version of the schema that was made. */
  version: number
  /** The collections whose tables were made. */
  collections: string[]
}

const MARK = 'move'
const DONE = 'moved '

/** Whether the schema is new, or a move into it was begun, or it was moved into it. */
export type TargetState = { kind: 'new' } | { kind: 'begun' | 'moved'; mark: Mark; done: Map<string, Digest> }

/** Makes the schema if there is none. Throws MirrorError for one that holds something that a move did not bring. */
export async function inspectTarget(server: Server): Promise<TargetState> {
  const settings = await readSettings(server)
  const mark = settings.get(MARK)
  if (mark !== undefined) {
    const kind = settings.get('version') === MOVING ? 'begun' : 'moved'
    return { kind, mark: JSON.parse(mark) as Mark, done: doneOf(settings) }
  }
  await migrate(server)
  await assertNothing(server)
  return { kind: 'new' }
}

function doneOf(settings: ReadonlyMap<string, string>): Map<string, Digest> {
  const done = [...settings].filter(([name]) => name.startsWith(DONE))
  return new Map(
    done.map(([name, value]) => {
      const [rows = '', sum = ''] = value.split(' ')
      return [name.slice(DONE.length), { rows: Number(rows), sum: BigInt(sum) }]
    }),
  )
}

/** Organizations and jobs alone are what any command notes of its configuration. */
async function assertNothing(server: Server): Promise<void> {
  const { schema, database } = server.address
  const found = await server.rows(`
    SELECT 1 FROM sync_runs
    UNION ALL SELECT 1 FROM sync_walks
    UNION ALL SELECT 1 FROM sync_jobs WHERE rows > 0
    UNION ALL SELECT 1 FROM organizations WHERE held_since IS NOT NULL
    LIMIT 1
  `)
  if (found.length > 0)
    throw new MirrorError(
      `the schema ${schema} of the database ${database} holds a mirror already, and nothing of it was touched: name another one with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${schema} CASCADE)`,
    )
  const locks = await advisoryLocks(server)
  const names = await server.rows<{ organization: string; collection: string }>(`
    SELECT name AS organization, '' AS collection FROM sync_settings WHERE starts_with(name, 'daemon ')
    UNION ALL SELECT organization_id, collection FROM sync_jobs
  `)
  if (names.some((one) => locks.has(String(lockKey(schema, one.organization, one.collection)))))
    throw new MirrorError(`a worker uses the schema ${schema} of the database ${database}: stop it first`)
}

/** Drops what an earlier attempt has made, makes all tables, empty, and notes that the move is under way: from now on no worker uses the schema. */
export function begin(
  server: Server,
  mark: Mark,
  earlier: Mark | null,
  collections: readonly MovedCollection[],
): Promise<void> {
  return server.transaction(async (sql) => {
    await sql.rows("UPDATE sync_settings SET value = $1 WHERE name = 'version'", [MOVING])
    await sql.rows(
      `DELETE FROM sync_settings WHERE starts_with(name, '${DONE}') OR starts_with(name, 'daemon ')`,
    )
    await note(sql, MARK, JSON.stringify(mark))
    // What an earlier attempt had made may not be written anywhere but in its mark: the tables that say it may be empty.
    const made = (earlier?.collections ?? []).flatMap((name) => KINDS.map((kind) => tableName(name, kind)))
    for (const table of made) await sql.exec(`DROP TABLE IF EXISTS ${quoted(table)} CASCADE`)
    for (const name of await runRule(sql, collectionNames())) await dropCollection(sql, name)
    await sql.exec(
      `TRUNCATE ${OWN_TABLES.map(({ name }) => quoted(name)).join(', ')}, sync_known_columns, sync_column_counts, sync_view_columns`,
    )
    for (const { name, shape, views } of collections) {
      await sql.exec([...tablesSql(POSTGRES, shape), ...changesViewSql(shape)].join(';\n'))
      for (const view of views) await sql.exec(viewSql(name, shape.keyColumns, view.to))
    }
  })
}

/** Notes that a table is whole. */
export function noteDone(server: Server, table: string, { rows, sum }: Digest): Promise<void> {
  return server.transaction((sql) => note(sql, DONE + table, `${rows} ${sum}`))
}

/** From now on workers can use the schema. `settings`: those of the file that go with its rows. */
export function finish(
  server: Server,
  collections: readonly MovedCollection[],
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  return server.transaction(async (sql) => {
    const histories = collections.map(({ name }) => [`${name}_history`, '_sequence'] as const)
    for (const [table, column] of [...COUNTERS, ...histories])
      await sql.exec(
        `SELECT setval(pg_get_serial_sequence('${quoted(table).replaceAll("'", "''")}', '${column}'), max(${quoted(column)})) FROM ${quoted(table)}`,
      )
    for (const [name, value] of Object.entries(settings)) await note(sql, name, value)
    await note(sql, 'version', String(LATEST_VERSION))
  })
}

async function note(sql: Sql, name: string, value: string): Promise<void> {
  await sql.rows(
    'INSERT INTO sync_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [name, value],
  )
}
