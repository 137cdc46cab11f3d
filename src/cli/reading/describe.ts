import { belongsTo } from '../../store/columns/catalog.ts'
import {
  type CollectionSummary,
  type ColumnSummary,
  collectionSummary,
  describeColumns,
  type JobSummary,
} from '../../store/core/describe.ts'
import { type Listed, listedCollections, listedNames, type Value } from '../../store/core/reading.ts'
import { counted, grouped, inWords, printable, printableJson } from '../../text.ts'
import { chunked } from '../output/formats/format.ts'
import { jsonValue } from '../output/formats/json.ts'
import { tableFormat, tableWidth } from '../output/formats/table.ts'
import { findNamed } from './named.ts'
import type { DescribeWork, ReadableMirror, ReadingTask } from './read.ts'

interface Described {
  name: string
  /** The other tables and views of the collection. */
  views: string[]
  summary: CollectionSummary
  columns: ColumnSummary[]
}

/** What each column of the collections holds, how many rows there are and as of when. */
export async function* describe(
  mirror: ReadableMirror,
  { name: typed, json, now }: DescribeWork,
  { configured, width }: Pick<ReadingTask, 'configured' | 'width'>,
): AsyncIterable<Uint8Array> {
  const { dialect } = mirror
  const collections = typed === null ? await mirror.ask(listedCollections(dialect)) : []
  const names = typed === null ? collections.map(({ collection }) => collection) : [typed]
  const all: Listed[] = []
  for (const name of names) all.push(await findNamed(mirror, name, configured))
  for (const [index, listed] of all.entries()) {
    const described = {
      name: listed.name,
      views: (await mirror.ask(listedNames(dialect))).filter(
        (other) => other !== listed.name && belongsTo(listed.collection, other),
      ),
      summary: await mirror.ask(collectionSummary(listed.collection)),
      columns: await mirror.ask(describeColumns(dialect, listed)),
    }
    const isFirst = index === 0
    yield* json
      ? chunked([isFirst ? '{"collections":[\n' : ',\n', describedJson(described)])
      : chunked([isFirst ? '' : '\n', ...describedText(described, now, width)])
  }
  if (json) yield* chunked([all.length === 0 ? '{"collections":[]}\n' : '\n]}\n'])
}

function* describedText(
  { name, views, summary, columns }: Described,
  now: number,
  width: number | null,
): Iterable<string> {
  const rows = columns[0]?.rows ?? summary.rows
  const of = name === summary.collection ? '' : ` (of ${summary.collection}: ${counted(summary.rows, 'row')})`
  yield `${name}: ${counted(rows, 'row')}${of}\n`
  for (const job of summary.jobs) yield `  ${jobText(job, now)}\n`
  if (views.length > 0) yield `  see also: ${views.join(', ')}\n`
  yield '\n'
  const shown = fitting(columns, width)
  const table = tableFormat(shown.columns, width)
  yield table.begin()
  for (const row of shown.rows) yield table.row(row)
  yield table.end()
}

function jobText(
  { organization, rows, as_of: asOf, fresh_as_of: freshAsOf, coverage }: JobSummary,
  now: number,
): string {
  const age = (time: string) => `${time} (${inWords(Math.max(0, now - Date.parse(time)))} ago)`
  const freshness =
    asOf === null ? 'never read whole' : `as of ${age(asOf)}${coverage ? `, ${coverage}` : ''}`
  const fresh = freshAsOf && freshAsOf !== asOf ? `, new rows as of ${age(freshAsOf)}` : ''
  return `${printable(organization, 40).padEnd(20)} ${counted(rows, 'row').padStart(14)}  ${freshness}${fresh}`
}

const HEADINGS = ['column', 'type', 'nulls', 'distinct', 'smallest', 'largest', 'example', 'path']

/** The longest values that fit the terminal. */
const SHOWN = [24, 16, 12, 8]

function fitting(
  columns: readonly ColumnSummary[],
  width: number | null,
): { columns: string[]; rows: Value[][] } {
  const tables = SHOWN.map((longest) => ({
    columns: HEADINGS,
    rows: columns.map((column) => shownRow(column, longest)),
  }))
  const [widest = { columns: HEADINGS, rows: [] }] = tables
  return width === null ? widest : (tables.find((table) => tableWidth(table) <= width) ?? widest)
}

function shownRow(
  { column, type, rows, nulls, distinct, isExact, ...values }: ColumnSummary,
  longest: number,
): Value[] {
  const shown = (value: Value) => (value === null ? '' : printable(String(value), longest))
  return [
    column,
    type,
    shareText(nulls, rows),
    `${isExact ? '' : '>'}${grouped(distinct)}`,
    shown(values.smallest),
    shown(values.largest),
    shown(values.example),
    values.path,
  ]
}

/** Shows 0 % and 100 % only where that is exact. */
function shareText(nulls: number, rows: number): string {
  if (nulls === 0 || rows === 0) return '0 %'
  const percent = (nulls / rows) * 100
  if (percent < 0.1) return '<0.1 %'
  return nulls < rows && percent > 99.9 ? '>99.9 %' : `${Number(percent.toFixed(1))} %`
}

/** Whole numbers are exact. Fields may be added, never changed. */
function describedJson({ name, views, summary, columns }: Described): string {
  const jobs = summary.jobs.map(
    ({ organization_id, organization, rows, as_of, fresh_as_of, coverage }: JobSummary) => ({
      organization_id,
      organization,
      rows,
      as_of,
      fresh_as_of,
      coverage,
    }),
  )
  const rows = columns[0]?.rows ?? summary.rows
  const head = JSON.stringify({
    name,
    collection: summary.collection,
    rows,
    organizations: jobs,
    see_also: views,
  })
  const lines = columns.map((column) => `  ${columnJson(column)}`)
  return `${printableJson(head.slice(0, -1))},"columns":[\n${lines.join(',\n')}\n]}`
}

function columnJson({
  column,
  path,
  type,
  rows,
  nulls,
  distinct,
  isExact,
  ...values
}: ColumnSummary): string {
  const share = rows === 0 ? 0 : nulls / rows
  const head = { column, path, type, nulls, null_share: share, distinct, distinct_is_exact: isExact }
  const own = (['smallest', 'largest', 'example'] as const).map((one) => `"${one}":${jsonValue(values[one])}`)
  return printableJson(`${JSON.stringify(head).slice(0, -1)},${own.join(',')}}`)
}
