import type { KnownError } from '../../errors.ts'
import type { JobResult } from '../../sync/job.ts'
import type { Job } from '../../sync/types.ts'
import type { VerifyResult } from '../../sync/verify.ts'
import { pasteable, printableJson } from '../../text.ts'

// What `sync --json` and `verify --json` write. Fields may be added, never changed.

/** Raise it when a field changes its meaning or is removed. */
const RESULTS_VERSION = 1 as const

/** An object as a command writes it, safe for a terminal. `configOption`: see `typedConfig`. */
export function jsonText(report: object, configOption: string): string {
  return `${printableJson(JSON.stringify(pasteable(report, configOption), null, 2))}\n`
}

/** The numbers of a run, by their names in `sync_runs`. */
const RUN_NUMBERS = {
  pages: 'pages',
  rows_seen: 'rowsSeen',
  rows_added: 'rowsAdded',
  rows_changed: 'rowsChanged',
  rows_removed: 'rowsRemoved',
  requests: 'requests',
  retries: 'retries',
  rate_limit_hits: 'rateLimitHits',
  rate_limit_wait_ms: 'rateLimitWaitMs',
} as const

type RunNumber = keyof typeof RUN_NUMBERS

export const RUN_NUMBER_NAMES = Object.keys(RUN_NUMBERS) as RunNumber[]

/** Null for a job that did not begin. */
export function runNumbers(run: JobResult['run']): Record<RunNumber, number | null> {
  const numbers = RUN_NUMBER_NAMES.map((name) => [name, run?.[RUN_NUMBERS[name]] ?? null])
  return Object.fromEntries(numbers) as Record<RunNumber, number | null>
}

/** The runs of a command. */
export function runsReport(results: readonly JobResult[], exitCode: number) {
  return {
    version: RESULTS_VERSION,
    exit_code: exitCode,
    runs: results.map(({ job, trigger, walk, run, runId, coverage, error, heldBack }) => ({
      ...jobFields(job),
      trigger,
      status: runStatus(error?.code ?? null, walk !== null || run !== null),
      run_id: run === null ? null : (runId ?? null),
      walk_id: walk?.id ?? null,
      ...runNumbers(run),
      coverage,
      ...errorFields(error ?? heldBack),
    })),
  }
}

/** A job that is busy, held or told to wait has no run. */
function runStatus(code: string | null, isBegun: boolean) {
  if (code === null) return 'succeeded'
  if (!isBegun) return 'not_begun'
  return code === 'INTERRUPTED' ? 'interrupted' : 'failed'
}

/** The lists that a `verify` compared. */
export function verifyReport(results: readonly VerifyResult[], exitCode: number) {
  return {
    version: RESULTS_VERSION,
    exit_code: exitCode,
    lists: results.map(({ job, differences: found, error }) => ({
      ...jobFields(job),
      items: found?.items ?? null,
      missing: found?.counts.missing ?? null,
      // A reading that is not trusted may have overlooked rows that are still in the list.
      extra: found?.isExtraKnown ? found.counts.extra : null,
      different: found?.counts.different ?? null,
      at_least: found?.isCut ?? false,
      moved: found?.moved ?? null,
      coverage: found?.coverage ?? null,
      never_synced: found?.isNeverSynced ?? null,
      differences: (found?.listed ?? []).map(({ kind, key, page, paths, hasMorePaths, reject }) => ({
        kind,
        key,
        page,
        fields: [...paths],
        more_fields: hasMorePaths,
        reject,
      })),
      ...errorFields(error),
    })),
  }
}

function jobFields({ organization, collection }: Job) {
  return { organization_id: organization.id, organization: organization.name, collection: collection.name }
}

function errorFields(error: KnownError | null) {
  return { error_code: error?.code ?? null, error_message: error?.message ?? null }
}
