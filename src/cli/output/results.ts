import { z } from 'zod'
import type { Differences } from '../../sync/differences.ts'
import type { JobResult } from '../../sync/job.ts'
import type { Job } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { asCalled, printableJson } from '../../text.ts'

// What `sync --json` and `verify --json` write. The schemas below describe it; fields may be added, never changed.

/** Is raised when a field changes its meaning or is removed. */
const RESULTS_VERSION = 1 as const

/** An object as a command writes it, safe for a terminal. */
export function jsonText(report: object): string {
  return `${printableJson(JSON.stringify(report, null, 2))}\n`
}

/** The runs of a command, with the names of `sync_runs`. `configOption`: see `typedConfig`. */
export function runsReport(results: readonly JobResult[], exitCode: number, configOption: string) {
  return {
    version: RESULTS_VERSION,
    exit_code: exitCode,
    runs: results.map((result) => runOf(result, configOption)),
  }
}

function runOf(result: JobResult, configOption: string) {
  const { job, trigger, walk, run, runId, coverage, expectedMissed, error, heldBack } = result
  return {
    ...jobFields(job),
    trigger,
    status: runStatus(error?.code ?? null, walk !== null || run !== null),
    run_id: run === null ? null : (runId ?? null),
    walk_id: walk?.id ?? null,
    pages: run?.pages ?? null,
    rows_seen: run?.rowsSeen ?? null,
    rows_added: run?.rowsAdded ?? null,
    rows_changed: run?.rowsChanged ?? null,
    rows_removed: run?.rowsRemoved ?? null,
    requests: run?.requests ?? null,
    retries: run?.retries ?? null,
    rate_limit_hits: run?.rateLimitHits ?? null,
    rate_limit_wait_ms: run?.rateLimitWaitMs ?? null,
    coverage,
    expected_missed: expectedMissed,
    ...errorFields(error ?? heldBack, configOption),
  }
}

/** A job that is busy, held or told to wait has no run. */
function runStatus(code: string | null, isBegun: boolean) {
  if (code === null) return 'succeeded'
  if (!isBegun) return 'not_begun'
  return code === 'INTERRUPTED' ? 'interrupted' : 'failed'
}

/** The lists that a `verify` compared. */
export function verifyReport(results: readonly VerifyResult[], exitCode: number, configOption: string) {
  return {
    version: RESULTS_VERSION,
    exit_code: exitCode,
    lists: results.map(({ job, differences, error }) => ({
      ...jobFields(job),
      ...(differences ? comparisonOf(differences) : NOT_COMPARED),
      ...errorFields(error, configOption),
    })),
  }
}

const NOT_COMPARED = {
  items: null,
  missing: null,
  extra: null,
  different: null,
  at_least: false,
  moved: null,
  coverage: null,
  never_synced: null,
  differences: [],
}

function comparisonOf(found: Differences) {
  const { items, counts, isCut, isExtraKnown, moved, coverage, isNeverSynced, listed } = found
  return {
    items,
    missing: counts.missing,
    // A reading that is not trusted may have overlooked rows that are still in the list.
    extra: isExtraKnown ? counts.extra : null,
    different: counts.different,
    at_least: isCut,
    moved,
    coverage,
    never_synced: isNeverSynced,
    differences: listed.map(({ kind, key, page, paths, hasMorePaths, reject }) => ({
      kind,
      key,
      page,
      fields: [...paths],
      more_fields: hasMorePaths,
      reject,
    })),
  }
}

function jobFields({ organization, collection }: Job) {
  return { organization_id: organization.id, organization: organization.name, collection: collection.name }
}

function errorFields(error: { code: string; message: string } | null, configOption: string) {
  return {
    error_code: error?.code ?? null,
    error_message: error === null ? null : asCalled(error.message, configOption),
  }
}

const countOrNull = () => z.int().min(0).nullable()

const Head = {
  version: z.literal(RESULTS_VERSION).describe('Another number: a field has changed its meaning, or is gone'),
  exit_code: z.int(),
}

const JobFields = { organization_id: z.string(), organization: z.string(), collection: z.string() }

const Failure = { error_code: z.string().nullable(), error_message: z.string().nullable() }

const Coverage = z.enum(['steady', 'repaired', 'drifted']).nullable()

/** `sync --json`. Numbers are null for a job that did not begin. */
export const SyncSchema = z
  .object({
    ...Head,
    runs: z.array(
      z.object({
        ...JobFields,
        trigger: z.string(),
        status: z
          .enum(['succeeded', 'failed', 'interrupted', 'not_begun'])
          .describe('not_begun: busy elsewhere, its token held, told to wait, or a signal came first'),
        run_id: countOrNull().describe('Its line of sync_runs'),
        walk_id: countOrNull(),
        pages: countOrNull(),
        rows_seen: countOrNull(),
        rows_added: countOrNull(),
        rows_changed: countOrNull(),
        rows_removed: countOrNull(),
        requests: countOrNull(),
        retries: countOrNull(),
        rate_limit_hits: countOrNull(),
        rate_limit_wait_ms: countOrNull(),
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
        ...JobFields,
        items: countOrNull().describe('Distinct items of the list'),
        missing: countOrNull().describe('Only in the list'),
        extra: countOrNull().describe('Only in the mirror; null also if the reading cannot tell'),
        different: countOrNull(),
        at_least: z.boolean().describe('There are more differences than were counted'),
        moved: countOrNull().describe('Came, went or changed meanwhile: no differences'),
        coverage: Coverage,
        never_synced: z.boolean().nullable(),
        differences: z
          .array(
            z.object({
              kind: z.enum(['missing', 'extra', 'different']),
              key: z.string().nullable(),
              page: countOrNull(),
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
