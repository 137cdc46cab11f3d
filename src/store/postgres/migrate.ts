import { MirrorError } from '../../errors.ts'
import { saveSetting, setting } from '../core/settings.ts'
import { exec, one, quoted, type Rule } from '../core/sql.ts'
import { remakeViews } from '../core/tables.ts'
import { assertKnownVersion, LATEST_VERSION, stepsFrom } from '../schema.ts'
import { POSTGRES } from './driver.ts'
import type { Server } from './server.ts'

/** Creates the schema and brings our own tables up to date. Any number of workers may do so at once. Returns whether there was no mirror before. Throws MirrorError. */
export function* makeSchema(server: Server): Rule<boolean> {
  const { schema, shown } = server.address
  // Before the schema is looked at: another worker may have been faster.
  yield* lockSchema(schema)
  // Where it is there already, a role needs no right to make it.
  if (!(yield* one('SELECT 1 FROM pg_namespace WHERE nspname = :schema', { schema })))
    yield* exec([`CREATE SCHEMA ${quoted(schema)}`])
  const done = (yield* findSettings(schema)) ? yield* version() : yield* assertEmpty(server)
  assertKnownVersion(done, shown)
  if (done === LATEST_VERSION) return false
  yield* exec(stepsFrom(done, 'server'))
  yield* remakeViews(POSTGRES)
  yield* saveSetting('version', String(LATEST_VERSION))
  return done === 0
}

/** Any number that nothing else uses for a lock. All versions share it. */
const LOCK = 919_553_173

/** Makes others that would make or migrate the tables of a schema wait for the end of this transaction. */
export function* lockSchema(schema: string): Rule<void> {
  yield* one('SELECT pg_advisory_xact_lock(:lock, hashtext(:schema))', { lock: LOCK, schema })
}

/** Whether the schema holds a mirror. Throws MirrorLostError for one of a version that is not known. */
export async function holdsMirror(server: Server): Promise<boolean> {
  const { schema, shown } = server.address
  const settings = await server.read(findSettings(schema))
  // A role for the rows of one organization may see those tables alone: it can query them, whatever the version.
  if (settings?.mayRead) assertKnownVersion(await server.read(version()), shown)
  return settings !== null
}

/** The table that makes a schema a mirror; null if there is none. */
function findSettings(schema: string): Rule<{ mayRead: number } | null> {
  return one(
    `
      SELECT has_schema_privilege(schema.oid, 'USAGE') AND has_table_privilege(pg_class.oid, 'SELECT') AS "mayRead"
      FROM pg_class
      JOIN pg_namespace AS schema ON schema.oid = relnamespace
      WHERE nspname = :schema AND relname = 'sync_settings' AND relkind = 'r'
    `,
    { schema },
  )
}

/** The number of the last step. */
function* version(): Rule<number> {
  return Number((yield* setting('version')) ?? 0)
}

/** Our names may belong to somebody else's tables, which must not be touched. */
function* assertEmpty({ address }: Server): Rule<0> {
  const stranger = yield* one(
    `
      SELECT 1
      FROM pg_class
      WHERE relnamespace = :schema::text::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
      LIMIT 1
    `,
    { schema: quoted(address.schema) },
  )
  if (!stranger) return 0
  throw new MirrorError(
    `${address.shown} is not a mirror, and has tables of somebody else: name an empty or a new schema with schema=NAME in the address`,
  )
}
