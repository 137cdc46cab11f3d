import fs from 'node:fs'
import manifest from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config/config.ts'
import { KnownError, MirrorError } from '../../errors.ts'
import { jobKey, type Overview, type Published, type Source } from '../../listener/overview.ts'
import type { Scheduler } from '../../schedule/scheduler.ts'
import type { LastRuns, MirrorSize, NewColumn, StoredGate } from '../../store/overview.ts'
import { numbersFile, readNumbers } from '../../store/sqlite/publish/numbers.ts'
import type { JobResult } from '../../sync/job.ts'
import { type StatusReader, statusOf } from '../watch/read-status.ts'
import type { Counts } from './counts.ts'
import { budgetUses } from './counts.ts'

/** What is read of a mirror of either kind. */
export interface ServedMirror {
  /** Throws MirrorError if the mirror cannot be used. */
  probe(): Promise<void>
  /** Why it cannot be written now; null: it can, or only its server knows. */
  unwritable(): string | null
  /** Throws MirrorError. `newSince`: from when on a column is new; epoch milliseconds. */
  overview(newSince: number): Promise<{
    reader: Omit<StatusReader, 'close'>
    runs: readonly LastRuns[]
    gates: readonly StoredGate[]
    /** Which token, by its fingerprint, each organization used last. */
    tokensUsed: ReadonlyMap<string, string | null>
    newColumns: readonly NewColumn[]
    size: MirrorSize
  }>
}

interface SourceOptions {
  served: ServedMirror
  config: Config
  scheduler: Pick<Scheduler, 'isTicking'>
  counts: Counts
  /** See `typedConfig`: for commands that users paste. */
  configOption: string
  now: () => number
}

export interface MirrorSource extends Source {
  /** Notes whether the run could use the mirror. */
  onResult(result: Pick<JobResult, 'error' | 'run'>): void
}

/** For how long a column is new. */
const NEW_MS = 7 * 86_400_000

/** What the listener answers from. */
export function createSource(options: SourceOptions): MirrorSource {
  const { served, config, scheduler, counts, configOption, now } = options
  const { database, organizations } = config
  const startedAt = new Date(now()).toISOString()
  const names = new Map(organizations.map(({ id, name }) => [id, name]))
  let fault: string | null = null

  async function unusable(): Promise<string | null> {
    try {
      await served.probe()
      return fault ?? served.unwritable()
    } catch (error) {
      return error instanceof KnownError ? error.message : `${database} cannot be read`
    }
  }

  async function overview(): Promise<Overview> {
    const time = now()
    const [known, why] = await Promise.all([served.overview(time - NEW_MS), unusable()])
    const { reader, runs, gates, tokensUsed, newColumns, size } = known
    return {
      version: manifest.version,
      started_at: startedAt,
      status: statusOf(reader, {
        database,
        config,
        now: time,
        configOption,
        unusable: why,
      }),
      runs: new Map(runs.map((one) => [jobKey(one), one])),
      budgets: budgetUses({ config, gates, tokensUsed, lastHour: counts.lastHour() }),
      counters: counts.counters((id) => names.get(id) ?? id),
      new_columns: newColumns,
      size,
      published: config.publish === null ? null : published(config.publish),
    }
  }

  return {
    health: async () => ({
      stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
      unusable: await unusable(),
    }),
    overview,
    onResult({ error, run }) {
      if (error instanceof MirrorError) fault = error.message
      else if (run !== null) fault = null
    },
  }
}

function published(file: string): Published {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) return { file, created_at: null, current_at: null, bytes: null }
  const current = readNumbers(numbersFile(fs.realpathSync(file)))?.current_at ?? null
  return { file, created_at: stat.mtime.toISOString(), current_at: current, bytes: stat.size }
}
