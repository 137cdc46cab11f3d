import fs from 'node:fs'
import type { Logger } from 'pino'
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import { publishDueAt } from '../schedule/publish-due.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import { originIn } from '../store/sqlite/publish/origin.ts'
import type { CopyResult, CopyTask } from '../store/sqlite/publish/publish.ts'
import { startCopy } from '../store/sqlite/publish/start.ts'
import type { Connection } from '../store/sqlite/sql.ts'
import type { JobResult } from '../sync/job.ts'
import type { Runtime } from './runtime.ts'

/** Keeps the published file up to date. Nothing here fails a run: what goes wrong is a warning in the log. */
export interface Publisher {
  /** Notes runs that ended: the file may have to be made again. */
  note(results: readonly Pick<JobResult, 'walk' | 'error'>[]): void
  /** The mirror has news for readers, of another kind than a complete walk. */
  noteNews(): void
  /** Publishes what is new, at once; for the end of a command. */
  finish(): Promise<void>
  /** Ends what is under way; the old file stays. */
  close(): Promise<void>
}

/** How a file is made of a mirror. */
export interface Publishing {
  /** When the last walk or refresh ended that a reader sees. Epoch milliseconds, by the clock of this machine. */
  lastNews(): Promise<number | null>
  /** Makes and places the file; null: another worker does so right now. Throws as `startCopy`. */
  publish(task: Omit<CopyTask, 'mirror' | 'at' | 'origin'>, signal: AbortSignal): Promise<CopyResult | null>
}

/** For a mirror in a file. */
export function createFilePublishing(
  connection: Connection,
  mirror: string,
  { pid, newToken }: Pick<Runtime, 'pid' | 'newToken'>,
): Publishing {
  return {
    async lastNews() {
      const last = connection.prepare(LAST_NEWS_SQL).pluck().get()
      return typeof last === 'string' ? Date.parse(last) : null
    },
    publish: async (task, signal) =>
      startCopy({ ...task, mirror, origin: originIn(connection) }, newLockName(pid, newToken), signal),
  }
}

export interface PublisherOptions {
  config: Pick<Config, 'publish' | 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal'>
  logger: Logger
  publishing: Publishing
  /** For a service: publishes by itself when it is time. A command does at its end. */
  isService: boolean
}

const NOTHING: Publisher = {
  note: () => {},
  noteNews: () => {},
  finish: async () => {},
  close: async () => {},
}

/** How often a service looks whether it is time. */
const LOOK_EVERY_MS = 1000

export function createPublisher({
  config,
  runtime,
  logger,
  publishing: source,
  isService,
}: PublisherOptions): Publisher {
  const { publish, publishEvery, publishMode } = config
  if (publish === null) return NOTHING
  const target = publish
  const { now } = runtime
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  // When the last news came that the file may lack. Not the first: a copy that began between two news shows only one of them.
  let newsAt: number | null = null
  let attemptedAt: number | null = null
  let running: Promise<void> | null = null

  async function makeCopy(): Promise<void> {
    const begun = now()
    // News that come meanwhile may be in the file or not.
    newsAt = null
    attemptedAt = begun
    try {
      const task = { target, mode: publishMode, isPublished: true, version: manifest.version }
      const published = await source.publish(task, signal)
      if (published === null) {
        // The other worker may have begun before our news.
        newsAt ??= begun
        logger.debug({ event: 'publish_elsewhere', file: target }, 'another worker publishes')
        return
      }
      const { rows, bytes, isPlaced } = published
      const fields = { event: 'published', file: target, rows, bytes, duration_ms: now() - begun }
      if (isPlaced) logger.info(fields, 'published')
      else
        logger.info(
          { ...fields, event: 'publish_skipped' },
          'not published, since another process has published a later state',
        )
    } catch (error) {
      newsAt ??= begun
      const message = error instanceof Error ? error.message : String(error)
      if (error instanceof InterruptedError)
        logger.info(
          { event: 'publish_stopped', file: target },
          'stopped before the copy was published; the old one stays',
        )
      else
        logger.warn(
          { event: 'publish_failed', file: target, reason: message },
          'not published; the old copy stays, if there is one',
        )
    }
  }

  function publishOnce(): Promise<void> {
    running ??= makeCopy().finally(() => {
      running = null
    })
    return running
  }

  function lookWhetherDue(): void {
    if (running || signal.aborted) return
    const dueAt = publishDueAt({ newsAt, publishedAt: timeOf(target), attemptedAt }, publishEvery, now())
    if (dueAt !== null && dueAt <= now()) void publishOnce()
  }

  async function noteUnpublished(): Promise<void> {
    const last = await source.lastNews()
    if (last !== null && last > (timeOf(target) ?? 0)) newsAt ??= last
  }

  // A service that was stopped before it published does so now. What fails here fails for the jobs, too, which report it.
  if (isService) void noteUnpublished().catch(() => {})

  const noteNews = () => {
    newsAt = now()
  }
  const stopLooking = isService ? runtime.every(LOOK_EVERY_MS, lookWhetherDue) : () => {}
  return {
    note(results) {
      if (results.some(({ walk, error }) => walk?.kind === 'full' && error === null)) noteNews()
    },
    noteNews,
    async finish() {
      if (newsAt !== null && !signal.aborted) await publishOnce()
    },
    async close() {
      stopLooking()
      stop.abort()
      await running
    },
  }
}

/** The moment that the published file shows. */
function timeOf(file: string): number | null {
  return fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null
}

/** For a mirror of either kind. */
export const LAST_NEWS_SQL = `
  SELECT max(at) AS at
  FROM (
    SELECT last_complete_at AS at FROM sync_status
    UNION ALL
    SELECT coalesce(finished_at, started_at) FROM sync_runs WHERE trigger = 'refresh' AND rows_added + rows_changed > 0
  ) AS news
`
