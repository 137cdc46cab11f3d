import path from 'node:path'
import { parsePostgresAddress } from '../../config/postgres-address.ts'
import { interpolate } from '../../config/variables.ts'
import { UsageError } from '../../errors.ts'
import type { Globals } from '../config-file.ts'
import { assertMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'

interface MoveOptions {
  from: string
  to: string
}

/** `move`: copies a mirror in a file into a schema of a PostgreSQL server. Needs no configuration. */
export async function run(runtime: Runtime, _globals: Globals, { from, to }: MoveOptions): Promise<number> {
  if (from === '') throw new UsageError('--from: name the file of a mirror')
  const { env, cwd } = runtime
  // It may hold a password, so it is not repeated.
  const address = interpolate(to, env)
  if (!('value' in address)) throw new UsageError(`--to ${address.problem}`)
  const parsed = parsePostgresAddress(address.value)
  if ('problem' in parsed) throw new UsageError(`--to ${parsed.problem}`)
  const { authority } = parsed.value
  const postgres = { ...parsed.value, authority: authority === null ? null : path.resolve(cwd, authority) }
  const file = path.resolve(cwd, from)
  assertMirror(file)
  const { moveToPostgres } = await import('../postgres/move.ts')
  return moveToPostgres(runtime, file, postgres)
}
