import { createHash } from 'node:crypto'
import { OF_THE_MIRROR } from '../help-texts.ts'
import type { Alteration } from './fit.ts'
import { OF_OUTER_JOB } from './jobs.ts'
import { saveSetting, setting } from './settings.ts'
import { type Dialect, quoted, type Rule } from './sql.ts'

// The views that every mirror has. They are made after the steps of the migrations, and again where their text has changed. To add a column,
// add it here and say in help-texts.ts what it is. Add it at the end: views of users may depend on the others.

/** A view, as its SELECT: the columns by name, and what follows them. */
export interface OwnView {
  name: string
  columns: Readonly<Record<string, string>>
  from: string
}

function selectOf({ columns, from }: Pick<OwnView, 'columns' | 'from'>): string {
  const list = Object.entries(columns).map(([name, value]) => `  ${value} AS ${quoted(name)}`)
  return `SELECT\n${list.join(',\n')}\n${from}`
}

/** Joins the run that `last_run_*` tell of: that of the last walk (`walked`), unless the latest run is a refresh that failed after its end. */
export const JOIN_LAST_RUN = `LEFT JOIN sync_runs AS run ON run.id = CASE
  WHEN latest.status = 'failed' AND (walked.id IS NULL OR latest.started_at >= walked.finished_at) THEN latest.id
  ELSE walked.id
END`

function lastRun(where: string): string {
  return `(SELECT max(id) FROM sync_runs WHERE ${OF_OUTER_JOB}${where})`
}

// A CAST declares the type of a column that is not a table's: otherwise strict readers of a file take its values for bytes.

function statusView({ joinFirst, declared }: Dialect): OwnView {
  return {
    name: 'sync_status',
    columns: {
      organization_id: 'job.organization_id',
      organization: 'organizations.name',
      collection: 'job.collection',
      rows: 'job.rows',
      as_of: 'walk.started_at',
      last_complete_at: 'walk.finished_at',
      coverage: 'walk.coverage',
      expected_missed: 'walk.expected_missed',
      fresh_as_of: `CAST(CASE WHEN job.fresh_as_of > walk.started_at THEN job.fresh_as_of ELSE walk.started_at END AS ${declared('timestamptz')})`,
      newest: 'job.newest',
      last_run_at: 'run.started_at',
      last_run_status: 'run.status',
      error_code: 'run.error_code',
      removals_held: 'job.removals_held',
    },
    from: `FROM sync_jobs AS job
JOIN organizations ON organizations.id = job.organization_id
${joinFirst('sync_walks', 'walk', `${OF_OUTER_JOB} AND status = 'complete' AND kind = 'full'`, 'id DESC')}
LEFT JOIN sync_runs AS walked ON walked.id = ${lastRun(" AND trigger <> 'refresh'")}
LEFT JOIN sync_runs AS latest ON latest.id = ${lastRun('')}
${JOIN_LAST_RUN}
WHERE job.configured = 1 OR job.rows > 0`,
  }
}

function columnsView({ sequence, declared }: Dialect): OwnView {
  const [whole, time] = [declared('bigint'), declared('timestamptz')]
  return {
    name: 'sync_columns',
    columns: {
      collection: 'known.collection',
      column: 'known."column"',
      path: 'known.path',
      type: 'known.type',
      first_seen_at: 'known.first_seen_at',
      last_changed_at: 'known.last_changed_at',
      filled: `CAST(counted.filled AS ${whole})`,
      misfits: `CAST(counted.misfits AS ${whole})`,
      last_filled_at: `CAST(counted.last_filled_at AS ${time})`,
      role: 'known.role',
      wide: 'known.wide',
      sequence: `known.${sequence}`,
    },
    from: `FROM sync_known_columns AS known
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
}

function ownViews({ dialect, furtherViews }: Alteration): OwnView[] {
  return [statusView(dialect), columnsView(dialect), ...furtherViews]
}

/** The setting that says of which texts the views were made. */
const VIEWS = 'views'

function textsOf(alteration: Alteration): string {
  const texts = ownViews(alteration).map(selectOf).join('\n')
  return createHash('sha256').update(texts).digest('hex').slice(0, 16)
}

/** Whether the views are those of this version. */
export function* hasOwnViews(alteration: Alteration): Rule<boolean> {
  return (yield* setting(VIEWS)) === textsOf(alteration)
}

/** Makes the views, or makes them again. Leaves a view with a column that is unknown here (a later version made it), and a table of that name (a user's). */
export function* makeOwnViews(alteration: Alteration): Rule<void> {
  const { dialect, makeView } = alteration
  for (const view of ownViews(alteration)) {
    const { name, columns } = view
    const found = yield* dialect.relationNamed([name])
    if (found && found.kind !== 'view') continue
    const known = yield* dialect.columnTypes(name)
    if ([...known.keys()].some((column) => !(column in columns))) continue
    yield* makeView(name, selectOf(view), commentsOf(dialect, name, known))
  }
  yield* saveSetting(VIEWS, textsOf(alteration))
}

/** What says what the view and its columns are; of one that is there already, of its new columns alone: a user may have his own words on the others. */
function commentsOf({ comment }: Dialect, view: string, known: ReadonlyMap<string, string>): string[] {
  const [says, columns] = OF_THE_MIRROR[view] ?? ['', {}]
  return [
    ...(known.size === 0 ? comment(`VIEW ${quoted(view)}`, says) : []),
    ...Object.entries(columns)
      .filter(([column]) => !known.has(column))
      .flatMap(([column, text]) => comment(`COLUMN ${quoted(view)}.${quoted(column)}`, text)),
  ]
}
