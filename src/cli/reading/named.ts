import { UsageError } from '../../errors.ts'
import { belongsTo, type Listed } from '../../store/sqlite/read/listed.ts'
import type { Reader } from '../../store/sqlite/read/reader.ts'
import { printable } from '../../text.ts'

/** Throws UsageError for a name that no table or view of these collections can have. */
export function assertNamed(name: string, configured: readonly string[]): void {
  if (!configured.some((collection) => belongsTo(collection, name))) throw unknown(name, [])
}

/** The table or view of this name. Throws UsageError if there is none. */
export function findNamed(reader: Reader, name: string, configured: readonly string[]): Listed {
  const listed = reader.find(name)
  if (listed) return listed
  throw notListed(name, { configured, collections: reader.collections(), names: reader.names() })
}

interface Known {
  /** The collections of the configuration. */
  configured: readonly string[]
  /** Those of the mirror. */
  collections: readonly string[]
  /** Their tables and views. */
  names: readonly string[]
}

/** The error for a name that the mirror does not have. */
export function notListed(name: string, { configured, collections, names }: Known): UsageError {
  if (configured.includes(name) && !collections.includes(name))
    return new UsageError(`nothing of ${name} was synced yet; "admin-mirror sync" does it`)
  return unknown(name, names)
}

function unknown(name: string, known: readonly string[]): UsageError {
  const names = known.length > 0 ? `; there are: ${printable(known.join(', '), 1000)}` : ''
  return new UsageError(
    `there is no collection ${printable(name)}, neither in the configuration nor in the mirror, and no view of one with that name${names}`,
  )
}
