import { parseSqlitePath } from '../columns/column.ts'
import type { ElementSql } from '../core/sql.ts'
import { literal } from './storable.ts'

/** Numbers that numeric holds without an error, and double precision too, up to the greatest. */
const NUMBER = String.raw`^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE]([+-]?[12]?[0-9]{1,2}|\+?30[0-8]))?$`
const GREATEST = '1.7976931348623157e308'
/** Texts that write out a number. */
const WHOLE_TEXT = '^(0|-?[1-9][0-9]{0,18})$'
const TEXT = String.raw`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`

export const ELEMENTS: ElementSql = {
  index: 'e.ordinal - 1',
  from: (
    column,
  ) => ` CROSS JOIN LATERAL json_array_elements(json_list(${column})) WITH ORDINALITY AS e (value, ordinal)
WHERE json_typeof(e.value) = 'object'`,
  value(type, path) {
    const names = `ARRAY[${parseSqlitePath(path)
      .map((name) => literal(storableName(name)))
      .join(', ')}]::text[]`
    const [at, text] = [`e.value #> ${names}`, `(e.value #>> ${names})`]
    const kind = `json_typeof(${at})`
    // An object with numbers as names is a list with holes.
    const members = `SELECT '[' || string_agg(m.value::text, ',' ORDER BY m.place) || ']' FROM json_each(${at}) WITH ORDINALITY AS m (name, value, place) HAVING bool_and(m.name ~ '^[0-9]+$')`
    if (type === 'TEXT')
      return `CASE ${kind} WHEN 'string' THEN ${text} WHEN 'number' THEN ${text} WHEN 'array' THEN (${at})::text WHEN 'object' THEN (${members}) END`
    const number = `${text}::numeric`
    const isNumber = (pattern: string) =>
      `${kind} = 'number' AND ${text} ~ '${NUMBER}' OR ${kind} = 'string' AND ${text} ~ '${pattern}'`
    const isSafe = `${number} BETWEEN -9007199254740991 AND 9007199254740991`
    if (type === 'INTEGER')
      return `CASE WHEN ${kind} = 'boolean' THEN (${text} = 'true')::int WHEN ${isNumber(WHOLE_TEXT)}
    THEN CASE WHEN ${number} = trunc(${number}) AND ${number} BETWEEN -9223372036854775808 AND 9223372036854775807 AND (${isSafe} OR ${text} !~ '[.eE]') THEN ${number} END END`
    return `CASE WHEN ${isNumber(TEXT)} AND length(${text}) <= 15
    THEN CASE WHEN ${isSafe} OR ${text} ~ '[.eE]' AND abs(${number}) <= ${GREATEST} THEN ${text}::double precision END END`
  },
}

/** As `storableJson` has written it. */
function storableName(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\\u0000')
}
