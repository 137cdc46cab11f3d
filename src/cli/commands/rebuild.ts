import { InterruptedError, UsageError } from '../../errors.ts'
import { guarded } from '../../mirror/database.ts'
import { createRebuilding, type Rebuilding } from '../../mirror/rebuilding.ts'
import { counted, printable } from '../../text.ts'
import { type Globals, readConfig } from '../context.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { assertMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { whileWriting } from '../writing.ts'

/** `rebuild`: the typed tables and the views of these collections, or of all, made anew from the raw rows. Needs no token. */
export async function rebuild(
  runtime: Runtime,
  globals: Globals,
  collections: readonly string[],
): Promise<number> {
  const { database: file } = readConfig(runtime, globals, 'leave')
  assertMirror(file)
  try {
    return await whileWriting(file, runtime, async ({ connection, transact, patience }) => {
      const rebuilding = guarded(file, () => createRebuilding({ ...patience, connection, file, transact }))
      const names = guarded(file, () => chosen(collections, rebuilding.collections()))
      for (const name of names) await rebuildOne(runtime, rebuilding, name)
      return 0
    })
  } catch (error) {
    if (!(error instanceof InterruptedError) || !runtime.signal.aborted) throw error
    runtime.stderr.write(`${error.message}\n`)
    return exitCodeOfStop(runtime.signal)
  }
}

function chosen(typed: readonly string[], known: readonly string[]): readonly string[] {
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger !== undefined)
    throw new UsageError(`the mirror has no collection ${stranger} (it has: ${known.join(', ') || 'none'})`)
  return typed.length === 0 ? known : [...new Set(typed)]
}

async function rebuildOne({ stdout, stderr }: Runtime, rebuilding: Rebuilding, name: string): Promise<void> {
  const { rows, strays, views, notices } = await rebuilding.collection(name)
  for (const notice of notices) stderr.write(`${name}: ${printable(notice, 500)}\n`)
  const gone = strays > 0 ? `, ${counted(strays, 'row')} without a raw one taken away` : ''
  stdout.write(`${name}: ${counted(rows, 'row')} made anew${gone}, ${counted(views, 'view')}\n`)
}
