import path from 'node:path'
import { isPostgresAddress } from '../../config/postgres-address.ts'
import { UsageError } from '../../errors.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { startCopy } from '../../store/sqlite/publish/publish.ts'
import { counted } from '../../text.ts'
import { readConfig } from '../config-file.ts'
import { exitCodeIfStopped } from '../exit-code.ts'
import { assertMirror, openMirror } from '../file/mirror.ts'
import { assertFolder, assertMayReplace, outputFile } from '../output/output-file.ts'
import type { Globals, Runtime } from '../runtime.ts'

interface Options {
  database?: string
}

/** `snapshot`: a copy of the mirror, made for reading, while syncs go on. */
export async function run(
  runtime: Runtime,
  globals: Globals,
  file: string,
  { database }: Options,
): Promise<number> {
  const { cwd, randomHex, pid, signal, stderr } = runtime
  const config = database === undefined ? readConfig(runtime, globals, 'leave') : null
  if (config?.postgres || (database !== undefined && isPostgresAddress(database)))
    throw new UsageError(
      `snapshot is for a mirror in a file; of a schema on PostgreSQL, pg_dump makes a copy: pg_dump --schema=${config?.postgres?.schema ?? 'admin_mirror'}`,
    )
  if (database === '') throw new UsageError('--database: name a file')
  const mirror = config ? config.database : path.resolve(cwd, database ?? '')
  if (file === '') throw new UsageError('name the file of the copy')
  const output = outputFile('snapshot', path.resolve(cwd, file))
  assertMayReplace(output, mirror, config)
  assertFolder(output)
  if (config) assertMirror(mirror)
  else openMirror(mirror, true).close()
  const task = { mirror, target: output.place, mode: null, published: null }
  try {
    const { rows, bytes } = await startCopy(task, newLockName(pid, randomHex), signal)
    stderr.write(`${output.place}: ${counted(rows, 'row')}, ${(bytes / 1e6).toFixed(1)} MB\n`)
    return 0
  } catch (error) {
    return exitCodeIfStopped(error, runtime, `stopped; ${output.place} is as it was`)
  }
}
