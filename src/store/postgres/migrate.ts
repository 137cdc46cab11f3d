import { MirrorError } from '../../errors.ts'
import { quoted } from '../core/sql.ts'
import { type ConfiguredCollection, hasTables, makeConfigured, remakeViews } from '../core/tables.ts'
import { assertKnownVersion, LATEST_VERSION, stepsFrom } from '../schema.ts'
import { POSTGRES, runRule } from './driver.ts'
import { placeOf, type Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'

/** Any number that nothing else uses for a lock, so that only migrations wait for each other. All versions share it. */
const LOCK = 919_553_173

/**
 * Creates the schema and brings our own tables up to date, in one transaction. Any number of workers may call it at once. Throws MirrorError
 * for a schema of another role.
 */
export async function migrate(server: Server): Promise<void> {
  const { schema } = server.address
  if ((await findSettings(server, schema)) && (await versionOf(server)) === LATEST_VERSION) return
  await server.transaction(async (sql) => {
    // Before the schema is looked at: another worker may have been faster.
    await sql.rows('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK, schema])
    const known = await sql.rows('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
    if (known.length === 0) await sql.exec(`CREATE SCHEMA ${quoted(schema)}`)
    const done = (await findSettings(sql, schema)) ? await versionOf(sql) : await assertEmpty(sql, server)
    assertKnownVersion(done, `the schema ${schema}`)
    for (const step of stepsFrom(done, 'server')) await sql.exec(step)
    await runRule(sql, remakeViews(POSTGRES))
    await sql.rows(
      "INSERT INTO sync_settings (name, value) VALUES ('version', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      [String(LATEST_VERSION)],
    )
  })
}

/** Makes the tables of configured collections that have none yet, so that queries work before the first row. */
export async function makeMissing(
  server: Server,
  collections: readonly ConfiguredCollection[],
): Promise<void> {
  const missing: ConfiguredCollection[] = []
  for (const collection of collections)
    if (!(await runRule(server, hasTables(collection)))) missing.push(collection)
  if (missing.length > 0) await server.transaction((sql) => runRule(sql, makeConfigured(POSTGRES, missing)))
}

/** Whether the schema holds a mirror. Throws MirrorLostError for one of a version that is not known. */
export async function holdsMirror(server: Server): Promise<boolean> {
  const settings = await findSettings(server, server.address.schema)
  // A role for the rows of one organization may see those tables alone: it can query them, whatever the version.
  if (settings?.mayRead) await assertKnownSchema(server)
  return settings !== undefined
}

/** The table that makes a schema a mirror; undefined if there is none. */
async function findSettings(
  sql: Pick<Sql, 'rows'>,
  schema: string,
): Promise<{ mayRead: boolean } | undefined> {
  const [found] = await sql.rows<{ mayRead: boolean }>(
    `
      SELECT has_schema_privilege(schema.oid, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT') AS "mayRead"
      FROM pg_class
      JOIN pg_namespace AS schema ON schema.oid = relnamespace
      WHERE nspname = $1 AND relname = 'sync_settings' AND relkind = 'r'
    `,
    [schema],
  )
  return found
}

/** The number of the last step. */
async function versionOf(sql: Pick<Sql, 'rows'>): Promise<number> {
  const [row] = await sql.rows<{ value: string }>("SELECT value FROM sync_settings WHERE name = 'version'")
  return Number(row?.value ?? 0)
}

/** Our names may belong to somebody else's tables, which must not be touched. */
async function assertEmpty(sql: Sql, { address }: Server): Promise<0> {
  const [stranger] = await sql.rows<{ name: string }>(
    `
      SELECT relname AS name
      FROM pg_class
      WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
      ORDER BY relname
      LIMIT 1
    `,
    [quoted(address.schema)],
  )
  if (!stranger) return 0
  throw new MirrorError(
    `${placeOf(address)} is not a mirror, and has tables of somebody else: name an empty or a new schema with schema=NAME in "database"`,
  )
}

/** Throws MirrorLostError if another version has made the schema, or has migrated it meanwhile. */
async function assertKnownSchema(server: Server): Promise<void> {
  assertKnownVersion(await versionOf(server), `the schema ${server.address.schema}`)
}
