import type { Config } from '../../../config/config.ts'
import { organizationsOf } from '../../../store/postgres/read/listed.ts'
import { selectItems, selectRows } from '../../../store/postgres/read/selection.ts'
import { formattedAsTheyCome } from '../../output/formats/format.ts'
import { itemFormat } from '../../output/formats/json.ts'
import type { OutputFile } from '../../output/output-file.ts'
import { assertEnvelope, exportFormat, idsOf } from '../../reading/export-format.ts'
import { assertNamed } from '../../reading/named.ts'
import { screenOf } from '../../reading/output.ts'
import type { ExportWork } from '../../reading/task.ts'
import type { Runtime } from '../../runtime.ts'
import { findNamed } from './named.ts'
import { readMirror } from './read-mirror.ts'

/** `export`: the rows of a collection or of a view of it; as NDJSON, a collection's items as they were sent. */
export async function exportPostgres(
  config: Config,
  runtime: Runtime,
  work: Omit<ExportWork, 'kind'>,
  output: OutputFile | null,
): Promise<number> {
  const { name, format, organizations, since, envelope, configured } = work
  const { isTerminal: safe } = screenOf(runtime, output)
  const assertUsage = () => {
    assertNamed(name, configured)
    idsOf(config.organizations, organizations?.typed ?? [])
  }
  return await readMirror(config, runtime, { output, assertUsage }, async (sql) => {
    const listed = await findNamed(sql, name, configured)
    assertEnvelope(name, listed.collection, envelope)
    const organizationIds = organizations && [
      ...organizations.ids,
      ...idsOf(await organizationsOf(sql), organizations.typed),
    ]
    const selection = { organizationIds, since }
    if (format === 'ndjson' && name === listed.collection)
      return formattedAsTheyCome(itemFormat({ envelope, safe }), await selectItems(sql, listed, selection))
    const { batches, ...head } = await selectRows(sql, listed, selection)
    return formattedAsTheyCome(exportFormat(listed, head, work, safe), batches)
  })
}
