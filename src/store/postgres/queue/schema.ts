import { createHash } from 'node:crypto'
import manifest from 'pg-boss/package.json' with { type: 'json' }
import { MirrorLostError } from '../../../errors.ts'
import { quoted } from '../../core/sql.ts'
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

/** Whether the schema of the queue is there. Throws MirrorLostError for one of a newer version. */
export async function isQueueMade(server: Server): Promise<boolean> {
  const schema = queueSchema(server.address.schema)
  const [found] = await server.rows<{ table: string | null }>(
    'SELECT to_regclass($2)::text AS table FROM pg_namespace WHERE nspname = $1',
    [schema, `${quoted(schema)}.version`],
  )
  if (!found?.table) return found !== undefined
  const [row] = await server.rows<{ version: number }>(`SELECT version FROM ${quoted(schema)}.version`)
  if ((row?.version ?? 0) <= QUEUE_VERSION) return true
  throw new MirrorLostError(
    `the schema ${schema} was made by a newer admin-mirror (version ${row?.version} of the queue, this one knows ${QUEUE_VERSION}): update this one`,
  )
}
