import { UsageError } from '../../errors.ts'
import { collectionsOf, type Holdings } from '../../store/core/forget.ts'
import { listedOrganizations } from '../../store/core/reading.ts'
import { counted, printable } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { isMade } from '../mirror.ts'
import type { Globals, Runtime } from '../runtime.ts'
import type { JobSelection } from '../selection.ts'
import { openToChange } from '../session.ts'

/** `forget`: deletes everything that the mirror holds of an organization, or of some of its collections. Needs no token. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  options: JobSelection & { yes?: boolean },
): Promise<number> {
  const { stdout, stderr } = runtime
  const [org = '', ...others] = options.org
  if (others.length > 0) throw new UsageError('forget takes one --org ORG')
  if (options.yes !== true) throw new UsageError('forget deletes for good, so it needs --yes')
  const config = readConfig(runtime, globals, 'leave')
  if (!(await isMade(config, runtime))) {
    organizationToForget(org, config.organizations)
    stderr.write(`there is nothing to forget: there is no mirror at ${config.database} yet\n`)
    return 0
  }
  const mirror = await openToChange(config, runtime, globals, true)
  try {
    const mirrored = await mirror.run(listedOrganizations)
    const { id, name } = organizationToForget(org, [...mirrored, ...config.organizations])
    const shown = printable(name)
    const configured = config.organizations.find((one) => one.id === id)?.collections ?? []
    const names = configured.map((collection) => collection.name)
    const held = await mirror.run(() => collectionsOf(id))
    assertKnown(options.collection, [...held, ...names])
    const collections = held.filter(
      (one) => options.collection.length === 0 || options.collection.includes(one),
    )
    let exitCode = 0
    for (const collection of collections) {
      const job = { organization: id, collection }
      const gone = await mirror.forgetting.job(job, names.includes(collection))
      if (gone) stdout.write(`forgot ${shown} ${collection}: ${holdingsText(gone)}\n`)
      else {
        stderr.write(`BUSY: ${shown} ${collection}: another process has it; nothing of it was deleted\n`)
        exitCode = 1
      }
    }
    if (collections.length === 0) stdout.write(`the mirror holds nothing of ${shown}\n`)
    if (configured.length === 0) await mirror.forgetting.organization(id)
    const readAgain = collections.filter((collection) => names.includes(collection)).join(', ')
    if (readAgain !== '')
      stderr.write(
        `${config.file} still names ${shown}, so the next sync reads ${readAgain} again; take it out of the file to keep it out of the mirror\n`,
      )
    return exitCode
  } finally {
    await mirror.close()
  }
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

interface Named {
  id: string
  name: string
}

/**
 * The organization with this UUID or name, of those that the mirror or the configuration knows. Throws UsageError for one that
 * neither knows, and for a name that several have: deleted data does not come back.
 */
export function organizationToForget(nameOrId: string, known: readonly Named[]): Named {
  const found = known.filter(({ id, name }) => id === nameOrId.toLowerCase() || name === nameOrId)
  const [one, ...others] = new Map(found.map((organization) => [organization.id, organization])).values()
  if (!one) {
    const names = [...new Set(known.map(({ name }) => name))].join(', ')
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

function assertKnown(typed: readonly string[], known: readonly string[]): void {
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger !== undefined)
    throw new UsageError(
      `--collection ${stranger}: neither the configuration nor the mirror has such a collection of this organization (they have: ${[...new Set(known)].join(', ') || 'none'})`,
    )
}
