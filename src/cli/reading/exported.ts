import type { Reader } from '../../store/sqlite/read/reader.ts'
import type { Selection } from '../../store/sqlite/read/selection.ts'
import { formatted } from '../output/formats/format.ts'
import { itemFormat } from '../output/formats/json.ts'
import { assertEnvelope, exportFormat, idsOf } from './export-format.ts'
import { findNamed } from './named.ts'
import type { ExportWork } from './task.ts'

/** The rows of a collection or of a view of it; as NDJSON, a collection's items as they were sent. */
export function exported(
  reader: Reader,
  work: ExportWork,
  isTerminal: boolean,
): Iterable<string | Uint8Array> {
  const { name, format, envelope, organizations, since } = work
  const listed = findNamed(reader, name, work.configured)
  assertEnvelope(name, listed.collection, envelope)
  const organizationIds = organizations && [
    ...organizations.ids,
    ...idsOf(reader.organizations(), organizations.typed),
  ]
  const selection: Selection = { organizationIds, since }
  if (format === 'ndjson' && name === listed.collection)
    return formatted(itemFormat({ envelope, safe: isTerminal }), reader.items(name, selection))
  const { rows, ...head } = reader.rows(listed, selection)
  return formatted(exportFormat(listed, head, work, isTerminal), rows)
}
