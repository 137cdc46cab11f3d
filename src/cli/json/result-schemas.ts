import { z } from 'zod'
import { RESULTS_VERSION } from './results.ts'

const count = () => z.int().min(0).nullable()

const Head = {
  version: z.literal(RESULTS_VERSION).describe('Another number: a field has changed its meaning, or is gone'),
  exit_code: z.int(),
}

const Job = { organization_id: z.string(), organization: z.string(), collection: z.string() }

const Failure = { error_code: z.string().nullable(), error_message: z.string().nullable() }

const Coverage = z.enum(['steady', 'repaired', 'drifted']).nullable()

/** `sync --json`. Numbers are null for a job that did not begin. */
export const SyncSchema = z
  .object({
    ...Head,
    runs: z.array(
      z.object({
        ...Job,
        trigger: z.string(),
        status: z
          .enum(['succeeded', 'failed', 'interrupted', 'not_begun'])
          .describe('not_begun: busy elsewhere, its token held, told to wait, or a signal came first'),
        run_id: count().describe('Its line of sync_runs'),
        walk_id: count(),
        pages: count(),
        rows_seen: count(),
        rows_added: count(),
        rows_changed: count(),
        rows_removed: count(),
        requests: count(),
        retries: count(),
        rate_limit_hits: count(),
        rate_limit_wait_ms: count(),
        coverage: Coverage,
        expected_missed: z.number().nullable(),
        ...Failure,
      }),
    ),
  })
  .meta({ title: 'admin-mirror sync --json' })

/** `verify --json`. Numbers are null for a list that was not compared. */
export const VerifySchema = z
  .object({
    ...Head,
    lists: z.array(
      z.object({
        ...Job,
        items: count().describe('Distinct items of the list'),
        missing: count().describe('Only in the list'),
        extra: count().describe('Only in the mirror; null also if the reading cannot tell'),
        different: count(),
        at_least: z.boolean().describe('There are more differences than were counted'),
        moved: count().describe('Came, went or changed meanwhile: no differences'),
        coverage: Coverage,
        never_synced: z.boolean().nullable(),
        differences: z
          .array(
            z.object({
              kind: z.enum(['missing', 'extra', 'different']),
              key: z.string().nullable(),
              page: count(),
              fields: z.array(z.string()).describe('Dotted paths; no values, which may be personal data'),
              more_fields: z.boolean(),
              reject: z.string().nullable().describe('Why the item has no usable key'),
            }),
          )
          .describe('The first of each kind'),
        ...Failure,
      }),
    ),
  })
  .meta({ title: 'admin-mirror verify --json' })
