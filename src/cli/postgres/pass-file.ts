import path from 'node:path'
import type { PostgresSettings } from '../../config/postgres-address.ts'
import { readRegularFile } from '../../config/token-file.ts'
import { MirrorError } from '../../errors.ts'
import { printable } from '../../text.ts'
import type { Runtime } from '../runtime.ts'

const LONGEST_FILE = 1_000_000

/** Who may read it besides its owner. */
const OTHERS = 0o077

type Place = Pick<PostgresSettings, 'host' | 'port' | 'database' | 'user'>

/**
 * The password in PostgreSQL's password file, of the first line that fits; undefined: none there. `PGPASSFILE` names the
 * file, else it is `~/.pgpass`, which need not be there. One that others may read is not read, as by PostgreSQL's own
 * programs. Throws MirrorError for a file that PGPASSFILE names and that cannot be used.
 */
export function passwordFromFile(
  place: Place,
  { env, cwd }: Pick<Runtime, 'env' | 'cwd'>,
): string | undefined {
  const { PGPASSFILE: named, HOME: home } = env
  if (named === undefined && home === undefined) return undefined
  const file = path.resolve(cwd, named ?? path.join(home ?? '', '.pgpass'))
  try {
    const text = readRegularFile(file, LONGEST_FILE, assertPrivate).toString()
    return passwordOf(text, place)
  } catch (error) {
    if (named === undefined) return undefined
    const why = error instanceof TooOpenError ? 'others may read it: run chmod 600' : codeOf(error)
    throw new MirrorError(`the file that PGPASSFILE names cannot be used (${why}): ${printable(file)}`)
  }
}

class TooOpenError extends Error {}

function assertPrivate({ mode }: { mode: number }): void {
  if ((mode & OTHERS) !== 0) throw new TooOpenError()
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
}

/** Lines of `host:port:database:user:password`, where `*` fits everything and `\` stands before a `:` or `\`. */
function passwordOf(text: string, { host, port, database, user }: Place): string | undefined {
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('#')) continue
    const fields = Array.from(line.matchAll(/((?:\\.|[^:\\])*)(?::|$)/g), ([, field = '']) =>
      field.replaceAll(/\\(.)/g, '$1'),
    )
    const [password] = fields.slice(4)
    const fits = [host, String(port), database, user].every(
      (wanted, index) => fields[index] === '*' || fields[index] === wanted,
    )
    if (fits && password) return password
  }
  return undefined
}
