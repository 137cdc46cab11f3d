import { UsageError } from '../../errors.ts'
import { knownCollections } from '../../store/core/tables.ts'
import { counted, printable } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { noMirror } from '../file/mirror.ts'
import { isMade, type OpenMirror, withMirror } from '../mirror.ts'
import type { Globals, Runtime } from '../runtime.ts'

/** `rebuild`: makes the typed tables and the views of these collections, or of all, from the raw rows. Needs no token. */
export async function run(runtime: Runtime, globals: Globals, typed: readonly string[]): Promise<number> {
  const config = readConfig(runtime, globals, 'leave')
  const configured = config.collections.map(({ name }) => name)
  if (!(await isMade(config, runtime))) {
    assertKnown(typed, configured)
    throw noMirror(config.database)
  }
  return withMirror(config, runtime, async (mirror) => {
    const mirrored = (await mirror.run(knownCollections)).map(({ name }) => name)
    assertKnown(typed, [...new Set([...mirrored, ...configured])])
    for (const name of typed.length === 0 ? mirrored : new Set(typed)) await rebuild(runtime, mirror, name)
    return 0
  })
}

function assertKnown(typed: readonly string[], known: readonly string[]): void {
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger === undefined) return
  throw new UsageError(
    `there is no collection ${stranger}, neither in the configuration nor in the mirror (there are: ${known.join(', ')})`,
  )
}

async function rebuild({ stdout, stderr }: Runtime, mirror: OpenMirror, name: string): Promise<void> {
  const { rows, strays, views, notices } = await mirror.rebuild(name)
  for (const notice of notices) stderr.write(`${name}: ${printable(notice, 500)}\n`)
  const gone = strays > 0 ? `, ${counted(strays, 'row')} without a raw one taken away` : ''
  stdout.write(`${name}: ${counted(rows, 'row')} rebuilt${gone}, ${counted(views, 'view')}\n`)
}
