import fs from 'node:fs'
import path from 'node:path'
import { systemCode, UsageError } from '../../errors.ts'
import { copyMirror } from '../../store/sqlite/copy.ts'
import { counted } from '../../text.ts'
import { openMirrorFile } from '../file.ts'
import { type DatabaseOption, readPlace } from '../place.ts'
import type { Invocation } from '../runtime.ts'

/** `snapshot`: a copy of the mirror, while syncs go on. */
export async function run(runtime: Invocation, file: string, options: DatabaseOption): Promise<number> {
  const { cwd, processName, signal, stderr, now } = runtime
  const { database: mirror, config } = await readPlace(runtime, options)
  if (config?.postgres)
    throw new UsageError(
      `snapshot is for a mirror in a file; of a schema on PostgreSQL, pg_dump makes a copy: pg_dump --schema=${config.postgres.schema}`,
    )
  const target = path.resolve(cwd, file)
  const folder = path.dirname(target)
  if (isThere(target))
    throw new UsageError(`${target} exists, and is left as it is: name a file that is not there yet`)
  if (!fs.existsSync(folder)) throw new UsageError(`there is no folder ${folder}`)
  // Whether it is one that can be read.
  openMirrorFile(mirror).close()
  const task = { mirror, target, publishMode: null, at: now() }
  const bytes = await copyMirror(task, processName, signal)
  stderr.write(`${target}: ${counted(bytes, 'byte')}\n`)
  return 0
}

/** A link to nothing is there, too. */
function isThere(file: string): boolean {
  try {
    return fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined
  } catch (error) {
    throw new UsageError(`${file} cannot be made (${systemCode(error)}): name another file`)
  }
}
