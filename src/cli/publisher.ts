import fs from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import {
  type Making,
  newsOf,
  nextPublication,
  notePublishFailure,
  publishFailure,
  type Shown,
  shown,
} from '../store/core/publication.ts'
import { copyMirror, mayReplace } from '../store/sqlite/copy.ts'
import { runRule } from '../store/sqlite/driver.ts'
import { openForReading } from '../store/sqlite/open.ts'
import type { OpenMirror } from './mirror.ts'
import type { Runtime } from './runtime.ts'

export interface PublisherOptions {
  config: Pick<Config, 'database' | 'publish' | 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal' | 'processName'>
  logger: Logger
  mirror: Pick<OpenMirror, 'read' | 'write'>
  /** A service publishes by itself when it is time; a command at its end. */
  isService: boolean
  /** Whatever is new, and also where no list is left of which a run has ended: what is forgotten must not stay in the file. */
  hasForgotten?: boolean
}

export type Publisher = NonNullable<ReturnType<typeof createPublisher>>

/** How often a service that has news sees whether it is time to publish them. */
const LOOK_FOR_NEWS_MS = 5000

/** Keeps the published file up to date; null: none is configured. Nothing here fails a run: what goes wrong is a warning. */
export function createPublisher(options: PublisherOptions) {
  const { config, runtime, logger, mirror, isService, hasForgotten = false } = options
  const { database, publish: file, publishEvery: every, publishMode } = config
  const { now, processName } = runtime
  if (file === null) return null
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  /** There may be some at the begin: another process may have been stopped before it published. */
  let mayHaveNews = true
  let tookMs = 0
  let failed: Making | null = null
  let running: Promise<void> | null = null

  async function isDue(target: string, at: number): Promise<boolean> {
    const current = await mirror.read(() => shown())
    const published = readPublished(target, publishMode)
    const isEmpty = current.lists.every(
      ({ as_of, last_run_status: last }) => as_of === null && (last === null || last === 'running'),
    )
    const news = published && !hasForgotten ? newsOf(current, published) : 'more'
    if (news === 'none' || (isEmpty && !(published && hasForgotten))) {
      await tell(null)
      return false
    }
    // Also after it is made: the file may lack what is written meanwhile.
    mayHaveNews = true
    const made = published && { at: fs.statSync(target).mtimeMs, tookMs }
    return !isService || nextPublication(news, { made, failed, every, now: at }) <= at
  }

  async function publishIfDue(target: string): Promise<void> {
    const at = now()
    mayHaveNews = false
    try {
      if (!(await isDue(target, at))) return
      const bytes = await copyMirror({ mirror: database, target, publishMode, at }, processName, signal)
      tookMs = now() - at
      failed = null
      await tell(null)
      logger.info({ event: 'published', file, bytes, duration_ms: tookMs }, 'published')
    } catch (error) {
      if (error instanceof InterruptedError) return
      const reason = error instanceof Error ? error.message : String(error)
      // An error: with `--quiet` nothing else would say it.
      logger.error({ event: 'publish_failed', file, reason }, `nothing was published: ${reason}`)
      failed = { at, tookMs: now() - at }
      mayHaveNews = true
      await tell(reason)
    }
  }

  /** Tells `status` why nothing was published. Where that cannot be written, the next try writes it. */
  async function tell(reason: string | null): Promise<void> {
    try {
      if ((await mirror.read(publishFailure)) !== reason) await mirror.write(() => notePublishFailure(reason))
    } catch {}
  }

  async function look(): Promise<void> {
    if (file === null || !mayHaveNews || running || signal.aborted) return
    running = publishIfDue(file)
    await running
    running = null
  }

  const stopLooking = isService ? runtime.every(Math.min(every, LOOK_FOR_NEWS_MS), look) : () => {}
  return {
    /** Notes that runs have ended, or a refresh. */
    note(): void {
      mayHaveNews = true
    },
    /** A command publishes what is new; a service stops what is in progress, and the old file stays. */
    async close(): Promise<void> {
      stopLooking()
      if (isService) stop.abort()
      else await look()
      await running
    },
  }
}

/** What the published file shows; null: there is none, or it has to be made again whatever it shows. */
function readPublished(target: string, mode: number): Shown | null {
  const stat = fs.statSync(target, { throwIfNoEntry: false })
  if (!stat?.size || (stat.mode & 0o777) !== mode || !mayReplace(target)) return null
  try {
    const connection = openForReading(target)
    try {
      return connection && runRule(connection, shown())
    } finally {
      connection?.close()
    }
  } catch {
    // Of another version of the program, or damaged.
    return null
  }
}
