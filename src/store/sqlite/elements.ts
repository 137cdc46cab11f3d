import { parseSqlitePath } from '../columns/column.ts'
import { type ElementSql, literal } from '../core/sql.ts'

/** Views that read elements need SQLite 3.38 or later, and 3.45 for fields whose names have a `"`. */
export const ELEMENTS: ElementSql = {
  index: 'CAST(e."key" AS INTEGER)',
  // CASE in CASE: only CASE guarantees that json_type never gets a text that is not JSON.
  from: (column) =>
    `, json_each(CASE WHEN json_valid(${column}) THEN CASE json_type(${column}) WHEN 'array' THEN ${column} END END) AS e\nWHERE e."type" = 'object'`,
  value(type, path, hasNul) {
    const { kind, value, written } = hasNul ? byNames(parseSqlitePath(path)) : byPath(literal(path))
    const isExact = `${value} BETWEEN -9007199254740991 AND 9007199254740991`
    // An object with numbers as names is a list with holes.
    const members = `SELECT '[' || group_concat(CASE WHEN "key" NOT GLOB '*[^0-9]*' THEN ${value} -> ('$."' || "key" || '"') END) || ']' FROM json_each(${value}) HAVING min("key" GLOB '[0-9]*' AND "key" NOT GLOB '*[^0-9]*')`
    if (type === 'TEXT')
      return `CASE ${kind} WHEN 'text' THEN ${value} WHEN 'object' THEN (${members}) WHEN 'integer' THEN ${written} WHEN 'real' THEN ${written} WHEN 'array' THEN ${written} END`
    // A text counts as the number that it writes out: SQLite writes that number in the same way.
    const whole = `CAST(${value} AS INTEGER)`
    if (type === 'INTEGER')
      return `CASE ${kind}
    WHEN 'integer' THEN CASE typeof(${value}) WHEN 'integer' THEN ${value} END
    WHEN 'true' THEN 1
    WHEN 'false' THEN 0
    WHEN 'real' THEN CASE WHEN ${isExact} AND ${whole} = ${value} THEN ${whole} END
    WHEN 'text' THEN CASE WHEN CAST(${whole} AS TEXT) = ${value} THEN ${whole} END
  END`
    return `CASE ${kind}
    WHEN 'integer' THEN CASE WHEN ${isExact} THEN ${value} END
    WHEN 'real' THEN CASE WHEN abs(${value}) <= 1.7976931348623157e308 THEN ${value} END
    WHEN 'text' THEN CASE WHEN length(${value}) <= 15 AND ${value} NOT GLOB '*[^-0-9.]*' AND json_valid(${value}) THEN ${value} END
  END`
  },
}

/** The class of a field, as json_type names it, its value, and how JSON writes it. */
interface FieldSql {
  kind: string
  value: string
  written: string
}

function byPath(at: string): FieldSql {
  return { kind: `json_type(e."value", ${at})`, value: `e."value" ->> ${at}`, written: `e."value" -> ${at}` }
}

/** SQLite reads a name in a path up to its NUL only, and so another field: where a list has such names, each is compared whole. */
function byNames(names: readonly string[]): FieldSql {
  const last = names.at(-1) ?? ''
  const object = names.slice(0, -1).reduce((json, name) => field('"value"', json, name), 'e."value"')
  const written = `CASE "type" WHEN 'array' THEN "value" ELSE json_quote("value") END`
  return {
    kind: field('"type"', object, last),
    value: field('"value"', object, last),
    written: field(written, object, last),
  }
}

function field(what: string, json: string, name: string): string {
  return `(SELECT ${what} FROM json_each(${json}) WHERE "key" = ${literal(name).replaceAll('\0', "' || char(0) || '")})`
}
