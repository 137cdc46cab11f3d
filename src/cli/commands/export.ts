import { findOrganization } from '../../config/organizations.ts'
import { type DatabaseOption, isMade, readTarget } from '../mirror.ts'
import type { OutputFormat } from '../reading/read.ts'
import { runReading } from '../reading/run-reading.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'

interface Options extends DatabaseOption {
  format: OutputFormat
  org: string[]
}

/** `export`: the rows of a table or view; with `ndjson` a collection's items. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  name: string,
  { format, org, database }: Options,
): Promise<number> {
  const place = await readTarget(runtime, globals, database)
  const { config } = place
  // If the mirror exists, it may know a name that is not in the configuration.
  if (config && org.length > 0 && !(await isMade(config, runtime))) selectOrganizations(config, org)
  const found = org.map((typed) => ({ typed, id: config && findOrganization(config, typed)?.id }))
  const organizations = {
    ids: found.flatMap(({ id }) => id ?? []),
    typed: found.flatMap(({ typed, id }) => (id ? [] : typed)),
  }
  const work = { kind: 'export', name, format, organizations: org.length > 0 ? organizations : null } as const
  return await runReading(runtime, place, work)
}
