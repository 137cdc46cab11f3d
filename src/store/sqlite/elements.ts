import type { ElementSql } from '../core/sql.ts'

/** Views that read elements need SQLite 3.38 or later, and 3.45 for fields whose names have a `"`. */
export const ELEMENTS: ElementSql = {
  index: 'CAST(e."key" AS INTEGER)',
  // CASE in CASE: only CASE guarantees that json_type never gets a text that is not JSON.
  from: (column) =>
    `, json_each(CASE WHEN json_valid(${column}) THEN CASE json_type(${column}) WHEN 'array' THEN ${column} END END) AS e\nWHERE e."type" = 'object'`,
  value(type, path) {
    const at = literal(path)
    const kind = `json_type(e."value", ${at})`
    const [value, written] = [`e."value" ->> ${at}`, `e."value" -> ${at}`]
    const isExact = `${value} BETWEEN -9007199254740991 AND 9007199254740991`
    if (type === 'TEXT')
      return `CASE WHEN ${kind} = 'text' THEN ${value} WHEN ${kind} IN ('integer', 'real', 'array') THEN ${written} END`
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

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
