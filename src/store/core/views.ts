import { createHash } from 'node:crypto'
import type { Described } from './declarations.ts'
import type { Alteration } from './fit.ts'
import { OF_OUTER_JOB } from './jobs.ts'
import { saveSetting, setting } from './settings.ts'
import { type Dialect, quoted, type Rule } from './sql.ts'

// The views that every mirror has. They are made after the steps of the migrations, and again where their text has changed. Add a new column at
// the end: views of users may depend on the others.

/** A view, as its SELECT: the columns by name, and what follows them. */
export interface MirrorView {
  name: string
  says: string
  columns: Readonly<Record<string, ViewColumn>>
  from: string | ((dialect: Dialect) => string)
}

/** The SQL of its values, and what they are; `says` is null for a column that only the program reads. */
type ViewColumn = readonly [sql: string | ((dialect: Dialect) => string), says: string | null]

function selectOf({ columns, from }: MirrorView, dialect: Dialect): string {
  const written = (sql: ViewColumn[0]) => (typeof sql === 'string' ? sql : sql(dialect))
  const list = Object.entries(columns).map(([name, [sql]]) => `  ${written(sql)} AS ${quoted(name)}`)
  return `SELECT\n${list.join(',\n')}\n${written(from)}`
}

/** What people read in a view. */
export function describedView({ says, columns }: MirrorView): Described {
  const texts = Object.entries(columns).map(([name, [, text]]) => [name, text])
  return [says, Object.fromEntries(texts.filter(([, text]) => text !== null)) as Record<string, string>]
}

/** Joins the run that `last_run_*` tell of: that of the last walk (`walked`), unless the latest run is a refresh that failed after its end. */
export const JOIN_LAST_RUN = `LEFT JOIN sync_runs AS run ON run.id = CASE
  WHEN latest.status = 'failed' AND (walked.id IS NULL OR latest.started_at >= walked.finished_at) THEN latest.id
  ELSE walked.id
END`

function lastRun(where: string): string {
  return `(SELECT max(id) FROM sync_runs WHERE ${OF_OUTER_JOB}${where})`
}

/** Declares the type of a computed column: strict readers of a file take the values of one without a type for bytes. */
function castTo(type: string, sql: string): ViewColumn[0] {
  return ({ declared }) => `CAST(${sql} AS ${declared(type)})`
}

export const STATUS_VIEW: MirrorView = {
  name: 'sync_status',
  says: 'one row per list (a collection of an organization): how fresh and how sure it is',
  columns: {
    organization_id: ['job.organization_id', 'the UUID of the organization'],
    organization: ['organizations.name', 'its name'],
    collection: ['job.collection', 'the name of the collection'],
    rows: ['job.rows', 'live rows of this list'],
    as_of: [
      'walk.started_at',
      'start of the last complete full walk: every item that has been in the list ever since is here',
    ],
    last_complete_at: ['walk.finished_at', 'end of that walk'],
    coverage: [
      'walk.coverage',
      'how sure it is to have seen all: steady (nothing moved), repaired (the list moved, and all of it is accounted for), drifted (it is not: some may be missing); null: the list has no total to count by',
    ],
    fresh_as_of: [
      castTo(
        'timestamptz',
        'CASE WHEN job.fresh_as_of > walk.started_at THEN job.fresh_as_of ELSE walk.started_at END',
      ),
      'what was added at the newest end of the list before then is here; says nothing of changes and removals',
    ],
    newest: ['job.newest', 'the end of the list where new items appear: first, last; null: not known yet'],
    last_run_at: [
      'run.started_at',
      'start of the last run, complete or not; a refresh counts only while it is the last and failed',
    ],
    last_run_status: ['run.status', 'running, succeeded, failed, interrupted'],
    error_code: ['run.error_code', 'why the last run failed, or REMOVALS_HELD'],
    removals_held: [
      'job.removals_held',
      'rows that left the list and are still here, until somebody decides',
    ],
  },
  from: ({ joinFirst }) => `FROM sync_jobs AS job
JOIN organizations ON organizations.id = job.organization_id
${joinFirst('sync_walks', 'walk', `${OF_OUTER_JOB} AND status = 'complete' AND kind = 'full'`, 'id DESC')}
LEFT JOIN sync_runs AS walked ON walked.id = ${lastRun(" AND trigger <> 'refresh'")}
LEFT JOIN sync_runs AS latest ON latest.id = ${lastRun('')}
${JOIN_LAST_RUN}
WHERE job.configured = 1 OR job.rows > 0`,
}

export const COLUMNS_VIEW: MirrorView = {
  name: 'sync_columns',
  says: 'one row per discovered column: where in an item it comes from',
  columns: {
    collection: ['known.collection', 'the name of the collection, and of its table'],
    column: ['known."column"', 'the name of the column'],
    path: ['known.path', "where its values are in _json, for SQLite's JSON functions: $.customer.email"],
    type: ['known.type', 'INTEGER, REAL, TEXT'],
    first_seen_at: ['known.first_seen_at', 'when its first value came'],
    last_changed_at: ['known.last_changed_at', 'when its type last changed'],
    filled: [
      castTo('bigint', 'counted.filled'),
      'live rows with a value in it, as of the last complete full walk of each list; null before the first one',
    ],
    misfits: [
      castTo('bigint', 'counted.misfits'),
      'live rows whose value did not fit it: it is, as text, in the column NAME__text',
    ],
    last_filled_at: [
      castTo('timestamptz', 'counted.last_filled_at'),
      'start of the last such walk that found any value',
    ],
    role: ['known.role', null],
    wide: ['known.wide', null],
    sequence: [({ sequence }) => `known.${sequence}`, null],
  },
  from: ({ sequence }) => `FROM sync_known_columns AS known
LEFT JOIN (
  SELECT
    count.collection,
    count."column",
    sum(count.filled) AS filled,
    sum(count.misfits) AS misfits,
    max(CASE WHEN count.filled > 0 THEN job.columns_as_of ELSE count.last_filled_at END) AS last_filled_at
  FROM sync_column_counts AS count
  JOIN sync_jobs AS job USING (organization_id, collection)
  GROUP BY 1, 2
) AS counted ON counted.collection = known.collection AND counted."column" = known."column"
ORDER BY known.${sequence}`,
}

function mirrorViews({ furtherViews }: Alteration): MirrorView[] {
  return [STATUS_VIEW, COLUMNS_VIEW, ...furtherViews]
}

/** The setting that holds a hash of the views' SQL. */
const VIEWS = 'views'

function hashOfViews(alteration: Alteration): string {
  const texts = mirrorViews(alteration)
    .map((view) => selectOf(view, alteration.dialect))
    .join('\n')
  return createHash('sha256').update(texts).digest('hex').slice(0, 16)
}

/** Whether the views are those of this version. */
export function* hasMirrorViews(alteration: Alteration): Rule<boolean> {
  return (yield* setting(VIEWS)) === hashOfViews(alteration)
}

/** Makes the views, or makes them again. Leaves a view with a column that is unknown here (a later version made it), and a table of that name (a user's). */
export function* makeMirrorViews(alteration: Alteration): Rule<void> {
  const { dialect, makeView } = alteration
  for (const view of mirrorViews(alteration)) {
    const { name, columns } = view
    const found = yield* dialect.relationNamed([name])
    if (found && found.kind !== 'view') continue
    const known = yield* dialect.columnTypes(name)
    if ([...known.keys()].some((column) => !(column in columns))) continue
    yield* makeView(name, selectOf(view, dialect), viewComments(dialect, view, known))
  }
  yield* saveSetting(VIEWS, hashOfViews(alteration))
}

/** The comments on a new view and its columns; on a view that is there, only those on its new columns: a user may have changed the others. */
function viewComments({ comment }: Dialect, view: MirrorView, known: ReadonlyMap<string, string>): string[] {
  const [says, columns] = describedView(view)
  const name = quoted(view.name)
  return [
    ...(known.size === 0 ? comment(`VIEW ${name}`, says) : []),
    ...Object.entries(columns)
      .filter(([column]) => !known.has(column))
      .flatMap(([column, text]) => comment(`COLUMN ${name}.${quoted(column)}`, text)),
  ]
}
