import { UsageError } from '../../errors.ts'
import { belongsTo, type Listed } from '../../store/sqlite/read/listed.ts'
import { printable } from '../../text.ts'
import { isOfMirror } from './mirror-tables.ts'
import type { ReadableMirror } from './readable-mirror.ts'
import type { DescribeWork, ExportWork } from './task.ts'

/** Throws UsageError for a name that no table or view of the configured collections can have. */
export function assertNameOf({ kind, name, configured }: ExportWork | DescribeWork): void {
  if (name === null || (kind === 'export' && isOfMirror(name))) return
  if (!configured.some((collection) => belongsTo(collection, name))) throw unknown(name, [])
}

/** The table or view of this name. Throws UsageError if there is none. */
export async function findNamed(
  mirror: ReadableMirror,
  name: string,
  configured: readonly string[],
): Promise<Listed> {
  const listed = await mirror.find(name)
  if (listed) return listed
  if (configured.includes(name) && !(await mirror.collections()).includes(name))
    throw new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  throw unknown(name, await mirror.names())
}

function unknown(name: string, known: readonly string[]): UsageError {
  const names = known.length > 0 ? `; there are: ${printable(known.join(', '), 1000)}` : ''
  return new UsageError(
    `there is no collection ${printable(name)}, neither in the configuration nor in the mirror, and no view of one with that name${names}`,
  )
}
