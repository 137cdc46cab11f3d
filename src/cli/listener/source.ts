import fs from 'node:fs'
import manifest from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config/config.ts'
import { KnownError, MirrorError } from '../../errors.ts'
import { jobKey, type Overview, type Published, type Source } from '../../listener/overview.ts'
import type { Scheduler } from '../../schedule/scheduler.ts'
import { translatingErrors } from '../../store/sqlite/file/open.ts'
import {
  mirrorSize,
  readGates,
  readLastRuns,
  readNewColumns,
  readTokensUsed,
} from '../../store/sqlite/read/overview.ts'
import { createReader } from '../../store/sqlite/read/reader.ts'
import type { Connection } from '../../store/sqlite/sql.ts'
import { createFileCheck } from '../../store/sqlite/transaction.ts'
import type { JobResult } from '../../sync/job.ts'
import type { Session } from '../session.ts'
import { statusOf } from '../watch/read-status.ts'
import { budgetUses } from './budgets.ts'
import type { Counts } from './counts.ts'

export interface SourceOptions {
  config: Config
  session: Pick<Session, 'processName'> & { connection: Connection }
  scheduler: Pick<Scheduler, 'isTicking'>
  counts: Counts
  /** How the program was called, so that its commands can be pasted. */
  program: string
  now: () => number
}

export interface MirrorSource extends Source {
  /** Notes whether the run could use the mirror. */
  onResult(result: Pick<JobResult, 'error' | 'run'>): void
}

/** For how long a column is new. */
export const NEW_MS = 7 * 86_400_000

/** What the listener answers from: read on the connection of the sync, between two of its transactions. */
export function createSource({
  config,
  session,
  scheduler,
  counts,
  program,
  now,
}: SourceOptions): MirrorSource {
  const { connection, processName } = session
  const { database: file, organizations } = config
  const reader = createReader(connection, file, processName)
  const assertSameFile = createFileCheck(file)
  const startedAt = new Date(now()).toISOString()
  const names = new Map(organizations.map(({ id, name }) => [id, name]))
  let fault: string | null = null

  function unusable(): string | null {
    try {
      assertSameFile()
      reader.gateClosedUntil()
      fs.accessSync(file, fs.constants.W_OK)
      return fault
    } catch (error) {
      return error instanceof KnownError ? error.message : `${file} cannot be written by this user`
    }
  }

  function overview(): Overview {
    const time = now()
    const status = statusOf(reader, { database: file, config, now: time, program })
    return translatingErrors(file, () => ({
      version: manifest.version,
      started_at: startedAt,
      status,
      runs: new Map(readLastRuns(connection).map((runs) => [jobKey(runs), runs])),
      budgets: budgetUses({
        config,
        gates: readGates(connection),
        tokensUsed: readTokensUsed(connection),
        lastHour: counts.lastHour(),
      }),
      counters: counts.counters((id) => names.get(id) ?? id),
      new_columns: readNewColumns(connection, new Date(time - NEW_MS).toISOString()),
      size: mirrorSize(file),
      published: config.publish === null ? null : published(config.publish),
    }))
  }

  return {
    health: () => ({
      stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
      unusable: unusable(),
    }),
    overview,
    onResult({ error, run }) {
      if (error instanceof MirrorError) fault = error.message
      else if (run !== null) fault = null
    },
  }
}

export function published(file: string): Published {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) return { file, created_at: null, bytes: null }
  return { file, created_at: stat.mtime.toISOString(), bytes: stat.size }
}
