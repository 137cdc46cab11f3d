import type { Config } from '../../config/config.ts'
import { findOrganization } from '../../config/organizations.ts'
import { UsageError } from '../../errors.ts'
import { shellWord } from '../../text.ts'
import { type DatabaseOption, isMade, readTarget } from '../mirror.ts'
import type { ExportFormat, NamedOrganizations } from '../reading/read.ts'
import { assertShowable, outputFor, runReading } from '../reading/run-reading.ts'
import type { Globals, Runtime } from '../runtime.ts'
import { selectOrganizations } from '../selection.ts'

interface Options extends DatabaseOption {
  format: ExportFormat
  org: string[]
  since?: string
  sinceSeq?: string
  envelope?: boolean
  bom?: boolean
  output?: string
}

/** `export`: the rows of a collection or of a view of it; with `ndjson` a collection's items as they were sent. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  name: string,
  options: Options,
): Promise<number> {
  const { format, org, envelope = false, bom = false } = options
  const since = options.since === undefined ? null : parseTime(options.since)
  const sinceSeq = options.sinceSeq === undefined ? null : parseSeq(name, options.sinceSeq)
  if (envelope && format !== 'ndjson') throw new UsageError('--envelope goes with --format ndjson')
  if (bom && format !== 'csv') throw new UsageError('--bom goes with --format csv')
  const place = await readTarget(runtime, globals, options.database)
  const { config } = place
  const output = await outputFor(runtime, options.output, place)
  assertShowable(runtime, output, format, shellWord(name))
  // If the mirror exists, it may know a name that is not in the configuration.
  if (config && org.length > 0 && !(await isMade(config, runtime))) selectOrganizations(config, org)
  const organizations = org.length > 0 ? splitOrganizations(config, org) : null
  const work = { kind: 'export', name, format, organizations, since, sinceSeq, envelope, bom } as const
  return await runReading(runtime, place, work, { output })
}

function splitOrganizations(config: Config | null, org: string[]): NamedOrganizations {
  const found = org.map((typed) => ({ typed, id: config && findOrganization(config, typed)?.id }))
  return {
    ids: found.flatMap(({ id }) => id ?? []),
    typed: found.flatMap(({ typed, id }) => (id ? [] : typed)),
  }
}

/** The number as it was typed: a JavaScript number cannot hold the greatest ones. */
function parseSeq(name: string, typed: string): string {
  if (!name.endsWith('_changes'))
    throw new UsageError(
      `--since-seq goes with the events of a collection (orders_changes), not with ${name}`,
    )
  if (!/^\d{1,18}$/.test(typed.trim()))
    throw new UsageError(
      `--since-seq ${typed}: write the greatest seq that you have read, a whole number like 1795161600000 (0: all)`,
    )
  return typed.trim()
}

/** A day or a time of ISO 8601; without an offset it is UTC, as all times of the mirror. */
const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/

/** A time as the mirror writes it. */
function parseTime(typed: string): string {
  const [, day, time = '00:00', offset = 'Z'] = TIME.exec(typed.trim().toUpperCase()) ?? []
  const found = Date.parse(`${day}T${time}${offset.replace(/^(...)(\d\d)$/, '$1:$2')}`)
  // Date.parse takes the 30th of February for the 2nd of March.
  const midnight = Date.parse(day ?? '')
  const isDay = !Number.isNaN(midnight) && new Date(midnight).toISOString().slice(0, 10) === day
  if (!isDay || Number.isNaN(found))
    throw new UsageError(
      `--since ${typed}: write a day or a time like 2026-11-20, 2026-11-20T08:30:00Z or 2026-11-20T08:30:00+02:00`,
    )
  return new Date(found).toISOString()
}
