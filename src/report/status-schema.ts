import { z } from 'zod'

// The contract of `status --json`, for programs that read it: `admin-mirror schema status` prints it as a JSON Schema. Fields
// may be added, never changed.

const time = () => z.string().describe('ISO 8601, UTC, milliseconds')
const count = () => z.int().min(0)

const Backfill = z.object({
  kind: z.enum(['full', 'partial']),
  filters: z.record(z.string(), z.unknown()),
  first_page: count(),
  page: count().nullable().describe('The next one; null: behind the last'),
  rows_seen: count(),
  total: count().nullable(),
  updated_at: time(),
  is_last_run: z.boolean(),
  next: z.string().describe('The command that continues it'),
})

const Freshness = {
  rows: count().describe('Live rows'),
  as_of: time().nullable().describe('Start of the last complete full walk'),
  last_complete_at: time().nullable().describe('Its end'),
  coverage: z.enum(['steady', 'repaired', 'drifted']).nullable(),
  expected_missed: z.number().nullable(),
  fresh_as_of: time().nullable(),
  newest: z.enum(['first', 'last']).nullable(),
  refreshed_every_ms: z
    .number()
    .nullable()
    .describe(
      'Milliseconds between two refreshes, as the rate limit allowed last; null before the first one',
    ),
  age_ms: z.int().nullable().describe('Milliseconds since as_of'),
  too_old: z.boolean().nullable().describe('By --max-age; null without it'),
  too_stale: z.boolean().nullable().describe('By --fresh; null without it'),
}

const Schedule = {
  schedule: z.string().nullable(),
  next_run_at: time().nullable().describe('The next time of the schedule; only a start goes by it'),
  due_at: time().nullable().describe('The first time of the schedule since the last run ended'),
  overdue: z.boolean().nullable().describe('Whether it should have been read by now'),
}

const LastRun = {
  last_run_at: time().nullable(),
  last_run_status: z.enum(['running', 'succeeded', 'failed', 'interrupted']).nullable(),
  last_run_trigger: z.string().nullable(),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
}

const Trouble = {
  failing_since: time()
    .nullable()
    .describe('End of the first run that failed since one succeeded; null: it is not failing'),
  failing_by: z
    .enum(['walk', 'refresh'])
    .nullable()
    .describe('A refresh that succeeds ends what a refresh began'),
  failing_code: z.string().nullable().describe('error_code of the last run that failed'),
  failing_message: z.string().nullable(),
  removals_held: count(),
  held_why: z.enum(['brake', 'empty']).nullable(),
  untrusted: z.string().nullable().describe('Why the last complete full walk removes nothing'),
  total_is_wrong: z.boolean(),
  rows_missed: count(),
  held_since: time().nullable().describe('When its token was refused'),
  held_reason: z.string().nullable(),
  forget: z.string().nullable().describe('For a list that is no longer configured'),
  next: z.string().nullable().describe('What to type or do; null: nothing'),
}

const Progress = {
  running: z.boolean().nullable().describe('Whether a process works on it; null: this user cannot tell'),
  work: z
    .enum(['schedule', 'manual', 'backfill', 'refresh', 'verify'])
    .nullable()
    .describe('What that process does; null: nothing, or it is about to begin'),
  retry_since: time().nullable().describe('When a page failed first that it asks for again; null: none does'),
  retry_until: time().nullable().describe('When it asks for it next'),
  retry_error: z.string().nullable().describe('How the page failed last'),
  walk_origin: z.enum(['sync', 'backfill']).nullable(),
  walk_page: count().nullable(),
  walk_pages: count().nullable(),
  walk_rows_seen: count().nullable(),
  walk_total: count().nullable(),
  walk_started_at: time().nullable(),
  walk_updated_at: time().nullable(),
  walk_percent: z.int().min(0).max(100).nullable(),
  walk_left_ms: count().nullable().describe('At the speed so far'),
  waiting_for: z.string().nullable(),
  waiting_until: time().nullable(),
  backfills: z.array(Backfill),
}

const Job = z.object({
  organization_id: z.string(),
  organization: z.string(),
  collection: z.string(),
  configured: z.boolean(),
  ...Freshness,
  ...Schedule,
  ...LastRun,
  ...Trouble,
  ...Progress,
})

export const StatusSchema = z
  .object({
    version: z.literal(1).describe('Another number: a field has changed its meaning, or is gone'),
    database: z.string(),
    now: time(),
    verdict: z.string().describe('How things are, in a sentence'),
    check_exit_code: z.literal([0, 1, 3, 4, 5]).describe('What status --check exits with'),
    unusable: z.string().nullable().describe('Why the mirror cannot be written; null: it can'),
    daemon: z.object({
      running: z.boolean().nullable().describe('Whether a start runs; null: this user cannot tell'),
      processes: z
        .array(z.object({ pid: count(), since: time(), running: z.boolean().nullable() }))
        .describe('Those that run, or died without being stopped'),
    }),
    queue: z
      .object({
        waiting: count().describe('Lists that no worker has taken yet'),
        oldest_ms: count().nullable().describe('How long the first of them has waited; null if none waits'),
        running: count().describe('Lists that workers have taken'),
        failed: count().describe('Runs of the last hour that failed'),
      })
      .nullable()
      .describe('Of a mirror on a PostgreSQL server; null for one in a file'),
    timezone: z.string().nullable(),
    waiting_until: time().nullable(),
    max_age: z.string().nullable().describe('As typed'),
    fresh: z.string().nullable().describe('As typed'),
    advice: z.array(z.string()).describe('Where the configuration asks for more than the rate limit carries'),
    notes: z
      .array(z.string())
      .describe('What needs nobody to act: columns whose values do not fit them, or that became empty'),
    jobs: z.array(Job),
  })
  .meta({ title: 'admin-mirror status --json' })
