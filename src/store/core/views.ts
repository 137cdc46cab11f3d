import { createHash } from 'node:crypto'
import { OF_OUTER_JOB } from './jobs.ts'
import { saveSetting, setting } from './settings.ts'
import { type Dialect, quoted, type Rule } from './sql.ts'

// The views that every mirror has. They are made after the steps of the migrations, and again where their text has changed. Add a new column at
// the end: views of users may depend on the others.

/** A view, as its SELECT: the columns by name, and what follows them. */
export interface MirrorView {
  name: string
  columns: Readonly<Record<string, ViewColumn>>
  from: string | ((dialect: Dialect) => string)
}

/** The SQL of its values. */
type ViewColumn = string | ((dialect: Dialect) => string)

function selectOf({ columns, from }: MirrorView, dialect: Dialect): string {
  const written = (sql: ViewColumn) => (typeof sql === 'string' ? sql : sql(dialect))
  const list = Object.entries(columns).map(([name, sql]) => `  ${written(sql)} AS ${quoted(name)}`)
  return `SELECT\n${list.join(',\n')}\n${written(from)}`
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
function castTo(type: string, sql: string): ViewColumn {
  return ({ declared }) => `CAST(${sql} AS ${declared(type)})`
}

const STATUS_VIEW: MirrorView = {
  name: 'sync_status',
  columns: {
    organization_id: 'job.organization_id',
    organization: 'organizations.name',
    collection: 'job.collection',
    rows: 'job.rows',
    as_of: 'walk.started_at',
    last_complete_at: 'walk.finished_at',
    coverage: 'walk.coverage',
    fresh_as_of: castTo(
      'timestamptz',
      'CASE WHEN job.fresh_as_of > walk.started_at THEN job.fresh_as_of ELSE walk.started_at END',
    ),
    newest: 'job.newest',
    last_run_at: 'run.started_at',
    last_run_status: 'run.status',
    error_code: 'run.error_code',
    failing_since: 'job.failing_since',
    held_since: 'organizations.held_since',
    removals_held: 'job.removals_held',
  },
  from: ({ joinFirst }) => `FROM sync_jobs AS job
JOIN organizations ON organizations.id = job.organization_id
${joinFirst('sync_walks', 'walk', `${OF_OUTER_JOB} AND status = 'complete' AND kind = 'full'`, 'id DESC')}
LEFT JOIN sync_runs AS walked ON walked.id = ${lastRun(" AND trigger <> 'refresh'")}
LEFT JOIN sync_runs AS latest ON latest.id = ${lastRun('')}
${JOIN_LAST_RUN}
WHERE job.configured = 1 OR job.rows > 0`,
}

const COLUMNS_VIEW: MirrorView = {
  name: 'sync_columns',
  columns: {
    collection: 'known.collection',
    column: 'known."column"',
    path: 'known.path',
    type: 'known.type',
    first_seen_at: 'known.first_seen_at',
  },
  from: ({ sequence }) => `FROM sync_known_columns AS known\nORDER BY known.${sequence}`,
}

const MIRROR_VIEWS = [STATUS_VIEW, COLUMNS_VIEW]

/** The setting that holds a hash of the views' SQL. */
const VIEWS = 'views'

function hashOfViews(dialect: Dialect): string {
  const texts = MIRROR_VIEWS.map((view) => selectOf(view, dialect)).join('\n')
  return createHash('sha256').update(texts).digest('hex').slice(0, 16)
}

/** Whether the views are those of this version. */
export function* hasMirrorViews(dialect: Dialect): Rule<boolean> {
  return (yield* setting(VIEWS)) === hashOfViews(dialect)
}

/** Makes the views, or makes them again. Leaves a view with a column that is unknown here (a later version made it), and a table of that name (a user's). */
export function* makeMirrorViews(dialect: Dialect): Rule<void> {
  for (const view of MIRROR_VIEWS) {
    const { name, columns } = view
    const found = yield* dialect.relationNamed([name])
    if (found && found.kind !== 'view') continue
    const known = yield* dialect.columnTypes(name)
    if ([...known.keys()].some((column) => !(column in columns))) continue
    yield* dialect.makeView(name, selectOf(view, dialect))
  }
  yield* saveSetting(VIEWS, hashOfViews(dialect))
}
