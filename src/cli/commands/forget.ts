import { UsageError } from '../../errors.ts'
import { collectionsOf } from '../../store/core/forget.ts'
import { listedOrganizations } from '../../store/core/query.ts'
import { counted, printable } from '../../text.ts'
import { readConfig } from '../configuration.ts'
import { placeOf, readFacts } from '../place.ts'
import type { Invocation } from '../runtime.ts'
import { type JobSelection, type Named, organizationsNamed } from '../selection.ts'
import { inMirror } from '../session.ts'

/** `forget`: deletes everything that the mirror holds of an organization, or of some of its collections. Needs no token. */
export async function run(runtime: Invocation, options: JobSelection & { yes?: boolean }): Promise<number> {
  const { stdout, stderr } = runtime
  const [org = '', ...others] = options.org
  if (others.length > 0) throw new UsageError('forget takes one --org ORG')
  if (options.yes !== true) throw new UsageError('forget deletes for good, so it needs --yes')
  const config = readConfig(runtime, 'leave')
  const { organizations } = config
  // Names are looked at first, and without a mirror the configuration has all of them.
  if ((await readFacts(placeOf(config), runtime)) === null) organizationToForget(org, organizations)
  return inMirror(runtime, { config, hasForgotten: true }, async (mirror) => {
    const mirrored = await mirror.read(listedOrganizations)
    const { id, name } = organizationToForget(org, [...mirrored, ...organizations])
    const shown = printable(name)
    const configured = organizations.find((one) => one.id === id)?.collections.map((one) => one.name) ?? []
    const held = await mirror.read(() => collectionsOf(id))
    const known = [...new Set([...held, ...configured])]
    const stranger = options.collection.find((one) => !known.includes(one))
    if (stranger !== undefined)
      throw new UsageError(
        `--collection ${stranger}: there is no such collection of this organization (known: ${known.join(', ')})`,
      )
    let exitCode = 0
    for (const collection of held) {
      if (options.collection.length > 0 && !options.collection.includes(collection)) continue
      const gone = await mirror.forgetting.job(
        { organization: id, collection },
        configured.includes(collection),
      )
      if (gone !== null) stdout.write(`forgot ${shown} ${collection}: ${counted(gone, 'row')}\n`)
      else {
        stderr.write(`BUSY: ${shown} ${collection}: another process has it; nothing of it was deleted\n`)
        exitCode = 1
      }
    }
    if (held.length === 0) stdout.write(`the mirror holds nothing of ${shown}\n`)
    if (configured.length === 0) await mirror.forgetting.organization(id)
    else if (exitCode === 0)
      stderr.write(`${config.file} still names ${shown}, so the next sync reads it again\n`)
    return exitCode
  })
}

/** Throws UsageError for a name that nobody or several have: deleted data does not come back. */
export function organizationToForget(typed: string, known: readonly Named[]): Named {
  const found = organizationsNamed(typed, known)
  const ids = [...new Set(found.map(({ id }) => id))]
  const [one] = found
  if (one && ids.length === 1) return one
  throw new UsageError(
    `--org ${typed}: several organizations have this name; write the UUID (${ids.join(', ')})`,
  )
}
