import { UsageError } from '../../errors.ts'
import { translatingErrors } from '../../store/sqlite/file/open.ts'
import { createTypedTableRebuild, type TypedTableRebuild } from '../../store/sqlite/tables/rebuild.ts'
import { counted, printable } from '../../text.ts'
import { type Globals, readConfig } from '../config-file.ts'
import { isNotMadeYet, noMirror, withMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'

/** `rebuild`: makes the typed tables and the views of these collections, or of all, from the raw rows. Needs no token. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  collections: readonly string[],
): Promise<number> {
  const config = readConfig(runtime, globals, 'leave')
  if (config.postgres) {
    const { rebuildOnPostgres } = await import('../postgres/rebuild.ts')
    return rebuildOnPostgres(runtime, config, collections)
  }
  const file = config.database
  const configured = config.collections.map(({ name }) => name)
  if (isNotMadeYet(file)) {
    assertKnown(collections, configured)
    throw noMirror(file)
  }
  return withMirror(config, runtime, async ({ connection, transact, patience }) => {
    const rebuilding = translatingErrors(file, () =>
      createTypedTableRebuild({ ...patience, connection, file, transact }),
    )
    const names = translatingErrors(file, () => chosen(collections, rebuilding.collections(), configured))
    for (const name of names) await rebuildOne(runtime, rebuilding, name)
    return 0
  })
}

export function chosen(
  typed: readonly string[],
  mirrored: readonly string[],
  configured: readonly string[],
): readonly string[] {
  assertKnown(typed, [...new Set([...mirrored, ...configured])])
  return typed.length === 0 ? mirrored : [...new Set(typed)]
}

function assertKnown(typed: readonly string[], known: readonly string[]): void {
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger === undefined) return
  throw new UsageError(
    `there is no collection ${stranger}, neither in the configuration nor in the mirror (there are: ${known.join(', ')})`,
  )
}

export async function rebuildOne(
  { stdout, stderr }: Runtime,
  rebuilding: Pick<TypedTableRebuild, 'collection'>,
  name: string,
): Promise<void> {
  const { rows, strays, views, notices } = await rebuilding.collection(name)
  for (const notice of notices) stderr.write(`${name}: ${printable(notice, 500)}\n`)
  const gone = strays > 0 ? `, ${counted(strays, 'row')} without a raw one taken away` : ''
  stdout.write(`${name}: ${counted(rows, 'row')} rebuilt${gone}, ${counted(views, 'view')}\n`)
}
