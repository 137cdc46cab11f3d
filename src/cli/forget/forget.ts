import type { Config } from '../../config/config.ts'
import { MirrorError, UsageError } from '../../errors.ts'
import { emptyWal, openForReading, translatingErrors } from '../../store/sqlite/file/open.ts'
import type { Connection } from '../../store/sqlite/sql.ts'
import { createForgetting, type Forgetting } from '../../store/sqlite/walks/forget.ts'
import {
  collectionsOf,
  type Holdings,
  holdingsOf,
  knownOrganizations,
} from '../../store/sqlite/walks/holdings.ts'
import { counted, printable } from '../../text.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { isNotMadeYet, withMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { collectionsToForget, organizationToForget } from './forget-target.ts'

export interface ForgetOptions {
  org: string[]
  collection: string[]
  yes?: boolean
}

export interface Target {
  organization: { id: string; name: string }
  collections: string[]
}

/**
 * `forget`: deletes everything that the mirror holds of an organization, or of some of its collections, also from the free
 * pages of the file. Needs no token. Without `--yes` it only lists what it would delete.
 */
export async function run(runtime: Runtime, globals: Globals, options: ForgetOptions): Promise<number> {
  const [org, ...others] = options.org
  if (org === undefined || others.length > 0) throw new UsageError('forget needs one --org ORG')
  const config = readConfig(runtime, globals, 'leave')
  if (config.postgres) {
    const { forgetOnPostgres } = await import('../postgres/forget.ts')
    return forgetOnPostgres(runtime, config, org, options)
  }
  const file = config.database
  const isNew = isNotMadeYet(file)
  if (isNew) targetOf(null, config, org, options.collection)
  if (options.yes !== true) throw new UsageError(whatWouldGo(config, org, options.collection))
  if (isNew) {
    runtime.stderr.write(`there is nothing to forget: there is no mirror at ${file} yet\n`)
    return 0
  }
  return withMirror(config, runtime, async ({ connection, leases, transact }) => {
    const target = translatingErrors(file, () => targetOf(connection, config, org, options.collection))
    const configured = config.collections
    const forgetting = translatingErrors(file, () =>
      createForgetting({ ...runtime, connection, leases, transact, configured }),
    )
    const code = await forgetAll(runtime, config, target, forgetting)
    if (!emptyWal(file)) runtime.stderr.write(`${LOG_IS_HELD}\n`)
    return code
  })
}

/** SQLite does not overwrite the unused middle of a database page that gets another use. */
const VACUUM_TOO =
  'where not even scraps may stay in the file, run VACUUM on it while nothing else does: sqlite3 FILE VACUUM'

const LOG_IS_HELD =
  'another process reads the mirror, so deleted data may still be in its file, or in the write-ahead log beside it; it ' +
  'goes with the next sync, or when the same command runs again'

/** `connection`: null without a mirror. Throws UsageError for names that neither the mirror nor the configuration has. */
function targetOf(connection: Connection | null, config: Config, org: string, collections: string[]): Target {
  const mirrored = connection ? knownOrganizations(connection) : []
  const organization = organizationToForget(org, mirrored, config.organizations)
  const known = connection ? collectionsOf(connection, organization.id) : []
  const configured = config.organizations.find(({ id }) => id === organization.id)?.collections ?? []
  const names = configured.map(({ name }) => name)
  return { organization, collections: collectionsToForget(collections, known, names) }
}

export const ONLY_WITH_YES = 'forget deletes for good, and only with --yes'

function whatWouldGo(config: Config, org: string, collections: string[]): string {
  let connection: Connection | null
  try {
    connection = openForReading(config.database)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return `${ONLY_WITH_YES}. What would go is unknown: ${error.message}`
  }
  if (!connection) return `${ONLY_WITH_YES}; there is nothing to forget yet`
  try {
    return translatingErrors(config.database, () => {
      const target = targetOf(connection, config, org, collections)
      const { id, name } = target.organization
      const lines = target.collections.map(
        (collection) =>
          `  ${printable(name)} ${collection}: ${holdingsText(holdingsOf(connection, { organizationId: id, collection }))}`,
      )
      return [`${ONLY_WITH_YES}. What would go:`, ...lines].join('\n')
    })
  } finally {
    connection.close()
  }
}

async function forgetAll(
  { stdout, stderr }: Runtime,
  config: Config,
  { organization, collections }: Target,
  forgetting: Forgetting,
): Promise<number> {
  const configured = config.organizations.find(({ id }) => id === organization.id)
  let code = 0
  await forgetting.blank()
  for (const collection of collections) {
    const isConfigured = configured?.collections.some(({ name }) => name === collection) === true
    const job = { organizationId: organization.id, collection }
    const forgotten = await forgetting.job(job, isConfigured)
    const name = `${printable(organization.name)} ${collection}`
    if (forgotten.owner === null) {
      stdout.write(`forgot ${name}: ${holdingsText(forgotten.gone)}\n`)
      if (forgotten.isCollectionGone)
        stdout.write(`nothing is left of ${collection}, so its columns and views are gone, too\n`)
    } else {
      stderr.write(
        `BUSY: ${name}: another process (${forgotten.owner}) is working on it; nothing of it was deleted\n`,
      )
      code = 1
    }
  }
  if (collections.length > 0 && code === 0) stderr.write(`${VACUUM_TOO}\n`)
  if (collections.length === 0) stdout.write(`the mirror holds nothing of ${printable(organization.name)}\n`)
  if (!configured) await forgetting.organization(organization.id)
  return code
}

export function holdingsText({ rows, versions, rejects, walks, pages, runs }: Holdings): string {
  return [
    counted(rows, 'row'),
    counted(versions, 'superseded version'),
    counted(rejects, 'reject'),
    `${counted(walks, 'walk')} with ${counted(pages, 'page')}`,
    counted(runs, 'run'),
  ].join(', ')
}
