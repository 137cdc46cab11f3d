const STEP = /\.(?:("(?:[^"\\]|\\.)*")|([^."[]+))/g

/**
 * The path of a field as SQLite's JSON functions take it: `$.customer.email`. A name that is empty or has a dot, a bracket or a
 * character that JSON escapes is quoted as in JSON: `$."a.b"`. Different paths have different texts.
 * The SQLite we bring finds every name so. Those before 3.45 compare the text inside the quotes with the name as it is
 * escaped in the JSON, and end it at the first `"`: they find no name that holds a `"`, however it is written. Of several names
 * in one object that are the same up to a NUL, every SQLite finds the first only.
 */
export function sqlitePath(path: readonly string[]): string {
  return '$' + path.map((name) => `.${isPlain(name) ? name : JSON.stringify(name)}`).join('')
}

/** The names that `sqlitePath` was made of. */
export function parseSqlitePath(text: string): string[] {
  return Array.from(text.matchAll(STEP), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)),
  )
}

function isPlain(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"` && !/[.[]/.test(name)
}
