import manifest from '../../../package.json' with { type: 'json' }
import { KnownError, MirrorError } from '../../errors.ts'
import { jobKey, type Overview, type Source } from '../../listener/overview.ts'
import type { LastRuns, MirrorSize, NewColumn, StoredGate } from '../../store/overview.ts'
import { type StatusReader, statusOf } from '../watch/read-status.ts'
import { budgetUses } from './budgets.ts'
import { type MirrorSource, NEW_MS, published, type SourceOptions } from './source.ts'

/** What is read of a mirror on a server. */
export interface ServedMirror {
  /** Throws MirrorError where the server does not answer. */
  probe(): Promise<void>
  /** Throws MirrorError. `newSince`: from when on a column is new. */
  overview(newSince: number): Promise<{
    reader: Omit<StatusReader, 'close'>
    runs: readonly LastRuns[]
    gates: readonly StoredGate[]
    tokensUsed: ReadonlyMap<string, string | null>
    newColumns: readonly NewColumn[]
    size: MirrorSize
  }>
}

/** What the listener answers from where the mirror is on a server. */
export function createServerSource(
  served: ServedMirror,
  { config, scheduler, counts, program, now }: Omit<SourceOptions, 'session'>,
): MirrorSource {
  const { database, organizations } = config
  const startedAt = new Date(now()).toISOString()
  const names = new Map(organizations.map(({ id, name }) => [id, name]))
  let fault: string | null = null

  async function unusable(): Promise<string | null> {
    try {
      await served.probe()
      return fault
    } catch (error) {
      return error instanceof KnownError ? error.message : `${database} cannot be read`
    }
  }

  async function overview(): Promise<Overview> {
    const time = now()
    const { reader, runs, gates, tokensUsed, newColumns, size } = await served.overview(time - NEW_MS)
    return {
      version: manifest.version,
      started_at: startedAt,
      status: statusOf(reader, { database, config, now: time, program }),
      runs: new Map(runs.map((one) => [jobKey(one), one])),
      budgets: budgetUses({ config, gates, tokensUsed, lastHour: counts.lastHour() }),
      counters: counts.counters((id) => names.get(id) ?? id),
      new_columns: newColumns,
      size,
      published: config.publish === null ? null : published(config.publish),
    }
  }

  const source: Source = {
    health: async () => ({
      stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
      unusable: await unusable(),
    }),
    overview,
  }
  return {
    ...source,
    onResult({ error, run }) {
      if (error instanceof MirrorError) fault = error.message
      else if (run !== null) fault = null
    },
  }
}
