import { UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'

/** One statement as the server takes it. */
export interface Statement {
  /** With `$1` for the first name, and so on. */
  text: string
  values: string[]
  /** The names of the values. */
  names: string[]
  /** In capitals; empty if there is none. */
  firstWord: string
}

/**
 * Puts `$1`, `$2` in the places of `:NAME`: not in strings, quoted names, comments and dollar quotes, and not for `::` and `:=`.
 * In brackets, where `[1:n]` is a slice, only names that have a value count. Throws UsageError for a name without a value, a value
 * without a name, and for `$1` itself.
 */
export function withPlaceholders(sql: string, parameters: ReadonlyMap<string, string>): Statement {
  if (sql.includes('\0'))
    throw new UsageError('the SQL holds a NUL character, which PostgreSQL has in no text')
  const names: string[] = []
  let text = ''
  let firstWord = ''
  let brackets = 0
  for (const token of tokensOf(sql)) {
    if (token === '[') brackets++
    else if (token === ']') brackets--
    else if (/^\$\d/.test(token))
      throw new UsageError(
        `the SQL has the parameter ${token}; write :NAME, and give its value with --param NAME=VALUE`,
      )
    else if (firstWord === '' && WORD.test(token)) firstWord = token.toUpperCase()
    const name = NAMED.test(token) ? token.slice(1) : null
    if (name === null || (brackets > 0 && !parameters.has(name))) {
      text += token
      continue
    }
    if (!parameters.has(name))
      throw new UsageError(
        `the SQL has the parameter ${printable(name)}; give its value with --param ${printable(name)}=VALUE`,
      )
    if (!names.includes(name)) names.push(name)
    text += `$${names.indexOf(name) + 1}`
  }
  const unused = [...parameters.keys()].find((name) => !names.includes(name))
  if (unused !== undefined)
    throw new UsageError(`--param ${printable(unused)}: the SQL has no such parameter`)
  return { text, values: names.map((name) => parameters.get(name) ?? ''), names, firstWord }
}

const WORD = /^[A-Za-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*$/u
const NAMED = /^:[\w\u0080-\u{10ffff}]/u

/** As PostgreSQL's own scanner divides them, as far as a colon or a dollar may stand in them. */
const TOKEN = new RegExp(
  [
    /[eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'?/u, // a string with escapes
    /'[^']*'?/u, // '' within it are two of these
    /"[^"]*"?/u,
    /--[^\r\n]*/u,
    /[A-Za-z_\u0080-\u{10ffff}][\w$\u0080-\u{10ffff}]*/u, // a dollar in a name begins no quote
    /\d[\w.]*/u,
    /\$\d+/u,
    /::|:=/u,
    /:[\w\u0080-\u{10ffff}]+/u,
    /\/\*/u,
    /\$(?:[A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)?\$/u,
    /./u,
  ]
    .map(({ source }) => source)
    .join('|'),
  'suy',
)

function* tokensOf(sql: string): Iterable<string> {
  for (let at = 0; at < sql.length; ) {
    TOKEN.lastIndex = at
    const [token = sql.slice(at)] = TOKEN.exec(sql) ?? []
    const end = endOf(sql, at, token)
    yield sql.slice(at, end)
    at = end
  }
}

/** Where the token ends that begins like this: comments nest, and a dollar quote ends with its own tag. */
function endOf(sql: string, at: number, token: string): number {
  const after = at + token.length
  if (token === '/*') return endOfComment(sql, after)
  if (!token.startsWith('$') || !token.endsWith('$') || token.length < 2) return after
  const closing = sql.indexOf(token, after)
  return closing === -1 ? sql.length : closing + token.length
}

function endOfComment(sql: string, from: number): number {
  const marks = /\/\*|\*\//g
  marks.lastIndex = from
  for (let depth = 1; depth > 0; ) {
    const mark = marks.exec(sql)
    if (!mark) return sql.length
    depth += mark[0] === '/*' ? 1 : -1
  }
  return marks.lastIndex
}
