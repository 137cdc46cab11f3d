import { createHash } from 'node:crypto'
import manifest from 'pg-boss/package.json' with { type: 'json' }
import { MirrorError, MirrorLostError } from '../../../errors.ts'
import { quoted } from '../../core/sql.ts'
import { strangeOwner } from '../migrate.ts'
import { type PostgresAddress, placeOf } from '../server/pool.ts'
import type { Server } from '../server/server.ts'

// The queue has a schema of its own: pg-boss names its tables `job`, `queue`, `version`, and a collection may have such a name.

const SUFFIX = '_queue'

/** pg-boss accepts no longer name of a schema. */
const LONGEST_SCHEMA = 50

const QUEUE_VERSION = manifest.pgboss.schema

/** The schema of the queue of a mirror. */
export function queueSchema(mirror: string): string {
  if (mirror.length + SUFFIX.length <= LONGEST_SCHEMA) return mirror + SUFFIX
  const hash = createHash('sha256').update(mirror).digest('hex').slice(0, 8)
  return `${mirror.slice(0, LONGEST_SCHEMA - SUFFIX.length - hash.length - 1)}_${hash}${SUFFIX}`
}

interface Found {
  exists: boolean
  /** Whether the role may make a schema, and tables in this one. */
  mayMake: boolean
  mayFill: boolean
  /** The first table or view in the schema; null if there is none. Without pg-boss in it, that is somebody else's. */
  stranger: string | null
  isInstalled: boolean
  mayUse: boolean
}

/**
 * Returns whether the schema is there. Throws MirrorError for one that this role can neither make nor use, or that is, or holds
 * tables, of somebody else, and MirrorLostError for one of a newer version.
 */
export async function assertQueueSchema(server: Server): Promise<boolean> {
  const { address } = server
  const schema = queueSchema(address.schema)
  const [found] = await server.rows<Found>(FIND, [schema, quoted(schema)])
  if (!found?.exists) {
    if (found?.mayMake) return false
    throw lacking(address, schema, `CREATE SCHEMA ${schema} AUTHORIZATION ${address.user}`)
  }
  if ((await strangeOwner(server, schema)) !== null)
    throw lacking(address, schema, `ALTER SCHEMA ${schema} OWNER TO ${address.user}`)
  if (!found.isInstalled && found.stranger !== null)
    throw new MirrorError(
      `${placeOf({ ...address, schema })} holds tables of somebody else, and the queue of this mirror ` +
        'needs that name: rename it, or name another schema with schema=NAME in "database"',
    )
  if (!(found.isInstalled ? found.mayUse : found.mayFill))
    throw lacking(address, schema, `ALTER SCHEMA ${schema} OWNER TO ${address.user}`)
  if (found.isInstalled) await assertKnownVersion(server, schema)
  return true
}

function lacking({ host, port, user, database }: PostgresAddress, schema: string, cure: string): MirrorError {
  return new MirrorError(
    `the PostgreSQL server at ${host}:${port}: the role ${user} lacks rights for the queue of the workers, which is in the ` +
      `schema ${schema} of the database ${database}: run ${cure} there, and start all workers with this role`,
  )
}

async function assertKnownVersion(server: Server, schema: string): Promise<void> {
  const [row] = await server.rows<{ version: number }>(`SELECT version FROM ${quoted(schema)}.version`)
  if ((row?.version ?? 0) <= QUEUE_VERSION) return
  throw new MirrorLostError(
    `the schema ${schema} was made by a newer admin-mirror (version ${row?.version} of the queue, this one knows ` +
      `${QUEUE_VERSION}): update this one`,
  )
}

const FIND = `
  SELECT
    schema.oid IS NOT NULL AS exists,
    has_database_privilege(current_database(), 'CREATE') AS "mayMake",
    coalesce(has_schema_privilege(schema.oid, 'CREATE'), false) AS "mayFill",
    to_regclass($2 || '.version') IS NOT NULL AND to_regclass($2 || '.bam') IS NOT NULL AS "isInstalled",
    coalesce(
      has_schema_privilege(schema.oid, 'USAGE')
        AND has_table_privilege(to_regclass($2 || '.job')::oid, 'SELECT, INSERT, UPDATE, DELETE'),
      false
    ) AS "mayUse",
    (SELECT relname FROM pg_class WHERE relnamespace = schema.oid ORDER BY relname LIMIT 1) AS stranger
  FROM (SELECT 1) AS one
  LEFT JOIN pg_namespace AS schema ON schema.nspname = $1
`
