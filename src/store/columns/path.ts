const STEP = /\.(?:("(?:[^"\\]|\\.)*")|([^."[]+))/g

/**
 * The path of a field for SQLite's JSON functions: `$.customer.email`. A name that is empty or has a dot, a
 * bracket or a character that JSON escapes is quoted as in JSON: `$."a.b"`. Different paths have different
 * texts. SQLite before 3.45 finds no name that holds a `"`; every SQLite finds only the first of several
 * names that are equal up to a NUL.
 */
export function sqlitePath(path: readonly string[]): string {
  return '$' + path.map((name) => `.${isPlain(name) ? name : JSON.stringify(name)}`).join('')
}

/** The reverse of `sqlitePath`. */
export function parseSqlitePath(text: string): string[] {
  return Array.from(text.matchAll(STEP), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)),
  )
}

function isPlain(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"` && !/[.[]/.test(name)
}
