import { EVENT_COLUMNS, SEQ } from '../../columns/changes-view.ts'
import type { OwnView } from '../../core/views.ts'
import { OF_A_COLLECTION, OF_AN_ARRAY, OF_THE_MIRROR, WORKING_COLUMNS, WORKINGS } from '../../help-texts.ts'

// `sync_help` is a view, so that it knows new collections and arrays without being written.

export function helpView(): OwnView {
  const columns = {
    table: 'CAST("table" AS TEXT)',
    column: 'CAST("column" AS TEXT)',
    says: 'CAST(says AS TEXT)',
  }
  return { name: 'sync_help', columns, from: `FROM (${linesSql()})` }
}

function linesSql(): string {
  // A key's path has dots where its column has two underscores, and a name with `_` in front gets a prefix.
  const key = `iif(key.value LIKE '\\_%' ESCAPE '\\', 'field', '') || replace(key.value, '.', '__')`
  // As `eventKeyNames` does it.
  const isTaken = `lower(key.value) IN (${[SEQ, ...EVENT_COLUMNS].map((column) => `'${column}'`).join(', ')})`
  const eventKey = `iif(ending = '_changes' AND ${isTaken}, key.value || '_2', ${key})`
  const ofKeys = `
    FROM sync_collections AS of, json_each(of.key) AS key`
  const discovered = `
    SELECT known.collection, known."column", CASE role
      WHEN 'text' THEN 'values at ' || path || ' of the item that do not fit its column, as text'
      ELSE 'the value at ' || path || ' of the item' END
    FROM sync_known_columns AS known WHERE role <> 'key'`
  const array = `(SELECT DISTINCT view, substr(view, 1, instr(view, '__') - 1) AS collection FROM sync_view_columns)`
  const workings = Object.entries(WORKINGS).map(([table, says]) => [table, null, says])
  const workingColumns = Object.entries(WORKING_COLUMNS).flatMap(([table, columns]) =>
    columns.split(' ').map((column) => [table, column, 'a working of the program']),
  )
  const [own, made, arrays] = [
    [...lines(OF_THE_MIRROR), ...workings, ...workingColumns],
    lines(OF_A_COLLECTION),
    lines({ '': OF_AN_ARRAY }),
  ].map(values)
  return `WITH
  own(name, "column", says) AS (VALUES ${own}),
  made(ending, "column", says) AS (VALUES ${made}),
  arrays(ending, "column", says) AS (VALUES ${arrays})
SELECT name AS "table", "column", says FROM own
UNION ALL
SELECT of.name || ending, "column", says FROM sync_collections AS of, made WHERE "column" IS NOT 'KEY'
UNION ALL
SELECT of.name || ending, ${eventKey}, says ${ofKeys}, made WHERE "column" = 'KEY'
UNION ALL
${discovered}
UNION ALL
SELECT view, "column", CASE role
  WHEN 'text' THEN 'values at ' || path || ' of the element that do not fit its column, as text'
  ELSE 'the value at ' || path || ' of the element' END
FROM sync_view_columns
UNION ALL
SELECT view, "column", says FROM ${array}, arrays WHERE "column" IS NOT '_parent_KEY'
UNION ALL
SELECT view, '_parent_' || (${key}), says ${ofKeys}, ${array} AS a, arrays
WHERE a.collection = of.name AND "column" = '_parent_KEY'`
}

function values(rows: (string | null)[][]): string {
  return rows.map((line) => `\n    (${line.map(text).join(', ')})`).join(',')
}

function lines(texts: typeof OF_THE_MIRROR): (string | null)[][] {
  return Object.entries(texts).flatMap(([table, [says, columns]]) => [
    [table, null, says],
    ...Object.entries(columns).map(([column, about]) => [table, column, about]),
  ])
}

function text(value: string | null): string {
  return value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`
}
