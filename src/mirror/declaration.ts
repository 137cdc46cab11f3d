import { quoted } from './sql.ts'

// What SQLite keeps of a table or an index is the text that declared it. These change such a text and nothing else of it:
// columns that a user added, and all that is said of them, stay as they are. Where the text is not of the shape that is
// known here, the answer is null.

/** The place where a table's last column ends, as ALTER TABLE would find it: our declarations end with the primary key. */
const CONSTRAINT = ',\n  PRIMARY KEY ('

/** With one column's type changed. */
export function withType(sql: string, column: string, from: string, to: string): string | null {
  // A column stands on a line of its own, or where ALTER TABLE put it.
  for (const before of ['\n  ', ', ']) {
    const [head = '', ...tails] = sql.split(`${before}${quoted(column)} ${from}`)
    if (tails.length === 1) return `${head}${before}${quoted(column)} ${to}${tails[0]}`
  }
  return null
}

/** With a further column behind the others. */
export function withColumn(sql: string, column: string, type: string): string | null {
  const end = sql.lastIndexOf(CONSTRAINT)
  return end === -1 ? null : `${sql.slice(0, end)}, ${quoted(column)} ${type}${sql.slice(end)}`
}

const NAME = String.raw`(?:"(?:[^"]|"")*"|\x60(?:[^\x60]|\x60\x60)*\x60|\[[^\]]*\]|[\p{L}_][\p{L}\p{N}_$]*)`
const TABLE = new RegExp(String.raw`^CREATE TABLE\s+${NAME}`, 'u')
const INDEX = new RegExp(String.raw`^(CREATE (?:UNIQUE )?INDEX)\s+${NAME}\s+ON\s+${NAME}\s*\(`, 'iu')

/** The declaration of a table under another name. */
export function withName(sql: string, name: string): string | null {
  return TABLE.test(sql) ? sql.replace(TABLE, () => `CREATE TABLE ${quoted(name)}`) : null
}

/** The declaration of an index under another name, on another table of the same columns. */
export function indexOn(sql: string, name: string, table: string): string | null {
  if (!INDEX.test(sql)) return null
  return sql.replace(INDEX, (_, create) => `${create} ${quoted(name)} ON ${quoted(table)} (`)
}
