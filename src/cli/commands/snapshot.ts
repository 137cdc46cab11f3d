import fs from 'node:fs'
import path from 'node:path'
import { isPostgresAddress } from '../../config/postgres-address.ts'
import { UsageError } from '../../errors.ts'
import { copyMirror } from '../../store/sqlite/copy.ts'
import { inBytes } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { openMirror } from '../file/mirror.ts'
import type { DatabaseOption } from '../mirror.ts'
import type { Globals, Runtime } from '../runtime.ts'

/** `snapshot`: a copy of the mirror, while syncs go on. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  file: string,
  { database }: DatabaseOption,
): Promise<number> {
  const { cwd, processName, signal, stderr, now } = runtime
  const config = database === undefined ? readConfig(runtime, globals, 'leave') : null
  if (config?.postgres || (database !== undefined && isPostgresAddress(database)))
    throw new UsageError(
      `snapshot is for a mirror in a file; of a schema on PostgreSQL, pg_dump makes a copy: pg_dump --schema=${config?.postgres?.schema ?? 'admin_mirror'}`,
    )
  if (database === '') throw new UsageError('--database: name a file')
  if (file === '') throw new UsageError('name the file of the copy')
  const target = path.resolve(cwd, file)
  if (fs.lstatSync(target, { throwIfNoEntry: false }))
    throw new UsageError(`${target} exists, and is left as it is: name a file that is not there yet`)
  if (!fs.existsSync(path.dirname(target))) throw new UsageError(`there is no folder ${path.dirname(target)}`)
  const mirror = config ? config.database : path.resolve(cwd, database ?? '')
  // Whether it is one that can be read.
  openMirror(mirror, config === null).close()
  const task = { mirror, target, mode: null, at: now(), isPublished: false }
  const bytes = await copyMirror(task, processName, signal)
  stderr.write(`${target}: ${inBytes(bytes)}\n`)
  return 0
}
