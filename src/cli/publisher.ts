import fs from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import {
  type Making,
  newsOf,
  nextPublication,
  notePublishFailure,
  type Shown,
  shown,
} from '../store/core/publication.ts'
import { copyMirror, mayReplace } from '../store/sqlite/copy.ts'
import { runRule } from '../store/sqlite/driver.ts'
import { openForReading } from '../store/sqlite/file/open.ts'
import type { OpenMirror } from './mirror.ts'
import type { Runtime } from './runtime.ts'

export interface PublisherOptions {
  /** The file, as `publish` names it. */
  target: string
  config: Pick<Config, 'database' | 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal' | 'processName'>
  logger: Logger
  mirror: Pick<OpenMirror, 'run'>
  /** A service publishes by itself when it is time; a command at its end. */
  isService: boolean
  /** Also where no list is left that was read to its end: what is forgotten must not stay in the file. */
  evenUnread?: boolean
}

export type Publisher = ReturnType<typeof createPublisher>

/** How often a service that has news sees whether it is time to publish them. */
const LOOK_EVERY_MS = 5000

/** Keeps the published file up to date. Nothing here fails a run: what goes wrong is a warning. */
export function createPublisher({
  target,
  config,
  runtime,
  logger,
  mirror,
  isService,
  evenUnread = false,
}: PublisherOptions) {
  const { database, publishEvery: every, publishMode: mode } = config
  const { now, processName } = runtime
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  /** There may be some at the begin: another process may have been stopped before it published. */
  let mayHaveNews = true
  let tookMs = 0
  let failed: Making | null = null
  let running: Promise<void> | null = null

  /** When the file is to be made; null: the mirror has no news, or no list was read to its end. */
  async function dueAt(): Promise<number | null> {
    const rested = nextPublication('more', { made: null, failed, every, now: now() })
    if (rested > now()) return rested
    const current = await mirror.run(() => shown())
    const file = readPublished(target, mode)
    const isUnread = current.lists.every(({ as_of }) => as_of === null)
    if (isUnread && !(evenUnread && file)) return null
    const news = file ? newsOf(current, file) : 'more'
    if (news === 'none') return null
    if (!isService) return now()
    const made = file && { at: fs.statSync(target).mtimeMs, tookMs }
    return nextPublication(news, { made, failed, every, now: now() })
  }

  async function publishIfDue(): Promise<void> {
    const at = now()
    mayHaveNews = false
    try {
      const due = await dueAt()
      // Also after it is made: the file may lack what is written meanwhile.
      mayHaveNews ||= due !== null
      if (due === null) await note(null)
      if (due === null || due > now()) return
      const task = { mirror: database, target, mode, at, isPublished: true }
      const bytes = await copyMirror(task, processName, signal)
      tookMs = now() - at
      failed = null
      await note(null)
      logger.info({ event: 'published', file: target, bytes, duration_ms: tookMs }, 'published')
    } catch (error) {
      if (error instanceof InterruptedError) return
      const reason = error instanceof Error ? error.message : String(error)
      logger.warn({ event: 'publish_failed', file: target, reason }, `nothing was published: ${reason}`)
      failed = { at, tookMs: now() - at }
      mayHaveNews = true
      await note(reason)
    }
  }

  /** Tells `status` why nothing was published. Where that cannot be written, the next try writes it. */
  async function note(reason: string | null): Promise<void> {
    await mirror.run(() => notePublishFailure(reason)).catch(() => {})
  }

  async function look(): Promise<void> {
    if (!mayHaveNews || running || signal.aborted) return
    running = publishIfDue()
    await running
    running = null
  }

  const stopLooking = isService ? runtime.every(Math.min(every, LOOK_EVERY_MS), look) : () => {}
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
