import { JobError, MirrorError, UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'

/** What an error of a statement of ours means that only reads. Returns the same error where it means nothing special. */
export function meaningOf(error: unknown): unknown {
  const code = sqlState(error)
  // Its message names the table, and no value.
  if (code === '42501' && error instanceof Error)
    return new MirrorError(
      `the PostgreSQL server says: ${printable(error.message, 300)}; GRANT SELECT on it to this role, or name a role that may read it`,
    )
  if (!ENDED.includes(code)) return error
  return new JobError(
    'TIMEOUT',
    `the PostgreSQL server has ended the statement (SQLSTATE ${code}): somebody cancelled it, or a time-out of the server or the role is shorter ` +
      '(see SHOW statement_timeout)',
  )
}

/** The same of a statement that the user wrote, with the server's own words. `names`: those of `$1`, `$2`, ... */
export function meaningOfSql(error: unknown, names: readonly string[]): unknown {
  const code = sqlState(error)
  if (!(error instanceof Error) || ENDED.includes(code) || !WRONG.test(code)) return meaningOf(error)
  const message = error.message.replace(/\$(\d+)/g, (typed, at: string) => {
    const name = names[Number(at) - 1]
    return name === undefined ? typed : `:${name}`
  })
  return new UsageError(`the SQL cannot be run: ${printable(message, 1000)}${hintFor(code)}`)
}

/** Whether a statement names a schema, table, column, type or function that there is not. */
export function isUnknownName(error: unknown): boolean {
  return ['3F000', '42P01', '42703', '42704', '42883'].includes(sqlState(error))
}

function sqlState(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Cancelled, or a time-out of the statement or the transaction. */
const ENDED = ['57014', '25P03', '25P04']

/** Classes of SQLSTATEs of a statement that is wrong, would write, fails by its data, or asks for what this role may not see. */
const WRONG = /^(?:0A|20|21|22|23|25|2F|34|38|39|3F|42|44|54|55|P0)/

function hintFor(code: string): string {
  if (code === '42P01' || code === '42703') return '; "admin-mirror describe" lists the names'
  if (code === '42P18') return '; write its type behind it, such as :NAME::bigint'
  return code === '25006' ? '; query only reads' : ''
}
