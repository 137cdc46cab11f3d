import type { Selection } from '../../store/sqlite/read/selection.ts'
import { formatted, type Tell } from '../output/formats/format.ts'
import { itemFormat } from '../output/formats/json.ts'
import { assertEnvelope, exportFormat, idsOf } from './export-format.ts'
import { isOfMirror, mirrorTable } from './mirror-tables.ts'
import { findNamed } from './named.ts'
import type { ReadableMirror } from './readable-mirror.ts'
import type { ExportWork } from './task.ts'

/** The rows of a collection, of a view of it, or of a table that every mirror has; as NDJSON, a collection's items as they were sent. */
export async function exported(
  mirror: ReadableMirror,
  work: ExportWork,
  isTerminal: boolean,
  tell: Tell,
): Promise<AsyncIterable<Uint8Array>> {
  const { name, format, envelope, organizations, since, sinceSeq } = work
  const listed = isOfMirror(name) ? null : await findNamed(mirror, name, work.configured)
  assertEnvelope(name, listed?.collection ?? '', envelope)
  const organizationIds = organizations && [
    ...organizations.ids,
    ...idsOf(await mirror.organizations(), organizations.typed),
  ]
  const selection: Selection = { organizationIds, since, sinceSeq }
  if (!listed) {
    const { sql, types } = mirrorTable(name, selection)
    const { columns, batches } = await mirror.query({ sql, parameters: [] })
    return formatted(exportFormat(null, { columns, types }, work, isTerminal), batches, tell)
  }
  if (format === 'ndjson' && name === listed.collection)
    return formatted(itemFormat({ envelope, safe: isTerminal }), await mirror.items(listed, selection), tell)
  const { batches, ...head } = await mirror.rows(listed, selection)
  return formatted(exportFormat(listed, head, work, isTerminal), batches, tell)
}
