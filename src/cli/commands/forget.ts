import type { Config } from '../../config/config.ts'
import { MirrorError, UsageError } from '../../errors.ts'
import { collectionsOf, type Holdings, holdingsOf } from '../../store/core/forget.ts'
import { listedOrganizations } from '../../store/core/reading.ts'
import type { Job } from '../../sync/types.ts'
import { counted, printable } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { isMade, kindOf, type OpenMirror, type RuleRunner, withMirror } from '../mirror.ts'
import type { Globals, Runtime } from '../runtime.ts'
import type { JobSelection } from '../selection.ts'

interface Options extends JobSelection {
  yes?: boolean
}

type Organization = Job['organization']

interface Target {
  organization: Organization
  collections: string[]
}

/** The write-ahead log, and free pages of the file, may hold what syncs deleted or wrote before. */
const FRAGMENTS =
  "fragments of what was deleted may stay in the database's files until they are used again; if none may stay, run VACUUM on it " +
  'while nothing else uses it (sqlite3 FILE VACUUM; on a server VACUUM FULL)'

/**
 * `forget`: deletes everything that the mirror holds of an organization, or of some of its collections. Needs no token. Without
 * `--yes` it only lists what it would delete.
 */
export async function run(runtime: Runtime, globals: Globals, options: Options): Promise<number> {
  const [org, ...others] = options.org
  if (org === undefined || others.length > 0) throw new UsageError('forget needs one --org ORG')
  const config = readConfig(runtime, globals, 'leave')
  const find = (mirror: RuleRunner | null) => findTarget(mirror, config, org, options.collection)
  const isNew = !(await isMade(config, runtime))
  if (isNew) await find(null)
  if (options.yes !== true)
    throw new UsageError(
      `forget deletes for good, so it needs --yes${await whatWouldGo(config, runtime, find)}`,
    )
  if (isNew) {
    runtime.stderr.write(`there is nothing to forget: there is no mirror at ${config.database} yet\n`)
    return 0
  }
  return withMirror(config, runtime, async (mirror) => forgetAll(runtime, config, await find(mirror), mirror))
}

/** `mirror`: null if there is none. Throws UsageError for names that neither the mirror nor the configuration has. */
async function findTarget(
  mirror: RuleRunner | null,
  config: Config,
  org: string,
  collections: string[],
): Promise<Target> {
  const mirrored = (await mirror?.run(listedOrganizations)) ?? []
  const organization = organizationToForget(org, mirrored, config.organizations)
  const held = (await mirror?.run(() => collectionsOf(organization.id))) ?? []
  const configured = config.organizations.find(({ id }) => id === organization.id)?.collections ?? []
  const names = configured.map(({ name }) => name)
  return { organization, collections: collectionsToForget(collections, held, names) }
}

/** The end of the message without --yes: what would be deleted. */
async function whatWouldGo(
  config: Config,
  runtime: Runtime,
  find: (mirror: RuleRunner) => Promise<Target>,
): Promise<string> {
  const { openToAsk } = await kindOf(config)
  let mirror: RuleRunner | null
  try {
    mirror = await openToAsk(config, runtime)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return `. What would be deleted is unknown: ${error.message}`
  }
  if (!mirror) return '; there is nothing to forget yet'
  try {
    const { organization, collections } = await find(mirror)
    const lines = ['. What would be deleted:']
    for (const collection of collections) {
      const job = { organization: organization.id, collection }
      const held = await mirror.run((dialect) => holdingsOf(dialect, job))
      lines.push(`  ${printable(organization.name)} ${collection}: ${holdingsText(held)}`)
    }
    return lines.join('\n')
  } finally {
    await mirror.close()
  }
}

async function forgetAll(
  { stdout, stderr }: Runtime,
  config: Config,
  { organization, collections }: Target,
  mirror: OpenMirror,
): Promise<number> {
  const configured = config.organizations.find(({ id }) => id === organization.id)
  const names = configured?.collections.map(({ name }) => name) ?? []
  const readAgain = collections.filter((collection) => names.includes(collection)).join(', ')
  const forgetting = await mirror.beginForgetting()
  let code = 0
  for (const collection of collections) {
    const job = { organization: organization.id, collection }
    const forgotten = await forgetting.job(job, names.includes(collection))
    const name = `${printable(organization.name)} ${collection}`
    if (forgotten.owner === null) {
      stdout.write(`forgot ${name}: ${holdingsText(forgotten.gone)}\n`)
    } else {
      stderr.write(
        `BUSY: ${name}: another process (${forgotten.owner}) is working on it; nothing of it was deleted\n`,
      )
      code = 1
    }
  }
  if (readAgain && code === 0)
    stderr.write(
      `${config.file} still names ${printable(organization.name)}, so the next sync reads ${readAgain} again; take it out of the file to keep it out of the mirror\n`,
    )
  if (collections.length === 0) stdout.write(`the mirror holds nothing of ${printable(organization.name)}\n`)
  if (!configured) await forgetting.organization(organization.id)
  if (collections.length > 0 && code === 0) stderr.write(`${FRAGMENTS}\n`)
  return code
}

function holdingsText({ rows, versions, rejects, walks, pages, runs }: Holdings): string {
  return [
    counted(rows, 'row'),
    counted(versions, 'superseded version'),
    counted(rejects, 'reject'),
    `${counted(walks, 'walk')} with ${counted(pages, 'page')}`,
    counted(runs, 'run'),
  ].join(', ')
}

/**
 * The organization with this UUID, or with this name in the mirror or in the configuration. Throws UsageError for one that
 * neither knows, and for a name that several have: deleted data does not come back.
 */
export function organizationToForget(
  nameOrId: string,
  mirrored: readonly Organization[],
  configured: readonly Organization[],
): Organization {
  const folded = nameOrId.toLowerCase()
  const all = [...configured, ...mirrored]
  const byId = all.find(({ id }) => id === folded)
  if (byId) return byId
  const exact = all.filter(({ name }) => name === nameOrId)
  const named = exact.length > 0 ? exact : all.filter(({ name }) => name.toLowerCase() === folded)
  const [one, ...others] = new Map(
    named.toReversed().map((organization) => [organization.id, organization]),
  ).values()
  if (!one) {
    const names = [...new Set(all.map(({ name }) => name))].join(', ')
    throw new UsageError(
      `--org ${nameOrId}: neither the configuration nor the mirror knows an organization of this name or UUID (they know: ${names})`,
    )
  }
  if (others.length > 0) {
    const ids = [one, ...others].map(({ id }) => id).join(', ')
    throw new UsageError(`--org ${nameOrId}: several organizations have this name; write the UUID (${ids})`)
  }
  return one
}

/**
 * The collections that the mirror has of the organization, or only the typed ones of them. Throws UsageError for a collection that
 * neither the mirror nor the configuration has.
 */
function collectionsToForget(
  typed: readonly string[],
  mirrored: readonly string[],
  configured: readonly string[],
): string[] {
  const all = [...new Set([...mirrored, ...configured])]
  const stranger = typed.find((name) => !all.includes(name))
  if (stranger !== undefined) {
    throw new UsageError(
      `--collection ${stranger}: neither the configuration nor the mirror has such a collection of this organization ` +
        `(they have: ${all.join(', ') || 'none'})`,
    )
  }
  return mirrored.filter((name) => typed.length === 0 || typed.includes(name))
}
