import fs from 'node:fs'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import { type Making, newsOf, nextPublication, type Shown, shown } from '../store/core/publication.ts'
import { copyMirror, mayReplace } from '../store/sqlite/copy.ts'
import { runRule } from '../store/sqlite/driver.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import { openForReading } from '../store/sqlite/file/open.ts'
import type { RuleRunner } from './mirror.ts'
import type { Runtime } from './runtime.ts'

export type Publisher = ReturnType<typeof createPublisher>

export interface PublisherOptions {
  /** The file, as `publish` names it. */
  target: string
  config: Pick<Config, 'database' | 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal' | 'pid' | 'randomHex'>
  logger: Logger
  mirror: Pick<RuleRunner, 'run'>
  /** A service publishes by itself when it is time; a command at its end. */
  isService: boolean
}

/** How often a service sees whether it is time to look. */
const TICK_MS = 1000

/** Times of the next look. */
const [AT_ONCE, NEVER] = [0, Number.POSITIVE_INFINITY]

/** Keeps the published file up to date. Nothing here fails a run: what goes wrong is a warning. */
export function createPublisher({
  target,
  config: { database, publishEvery, publishMode },
  runtime,
  logger,
  mirror,
  isService,
}: PublisherOptions) {
  const { now } = runtime
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  /** When to look again. A service that was stopped before it published does so now. */
  let lookAt = isService ? AT_ONCE : NEVER
  let lookedAt = 0
  let tookMs = 0
  let failed: Making | null = null
  let running: Promise<void> | null = null

  /** When the file is to be made; null: the mirror has no news, or no list was read to its end. */
  async function dueAt(): Promise<number | null> {
    const current = await mirror.run(() => shown())
    if (current.lists.every(({ as_of }) => as_of === null)) return null
    const file = readPublished(target, publishMode)
    const news = file ? newsOf(current, file) : 'more'
    if (news === 'none') return null
    if (!isService) return now()
    const made = file && { at: fs.statSync(target).mtimeMs, tookMs }
    return nextPublication(news, { made, failed, every: publishEvery, now: now() })
  }

  async function publishDue(): Promise<void> {
    const begun = now()
    lookedAt = begun
    lookAt = NEVER
    try {
      const due = await dueAt()
      if (due === null) return
      // If it is due now, this looks once more: the file may lack what is written meanwhile.
      lookAt = due
      if (due > now()) return
      const task = { mirror: database, target, mode: publishMode, at: begun, isPublished: true }
      const bytes = await copyMirror(task, newLockName(runtime.pid, runtime.randomHex), signal)
      tookMs = now() - begun
      failed = null
      logger.info({ event: 'published', file: target, bytes, duration_ms: tookMs }, 'published')
    } catch (error) {
      if (error instanceof InterruptedError) return
      const reason = error instanceof Error ? error.message : String(error)
      logger.warn({ event: 'publish_failed', file: target, reason }, `nothing was published: ${reason}`)
      failed = { at: begun, tookMs: now() - begun }
      lookAt = begun + publishEvery
    }
  }

  function publishOnce(): Promise<void> {
    running ??= publishDue().finally(() => {
      running = null
    })
    return running
  }

  async function lookWhetherDue(): Promise<void> {
    // A clock that was set back delays nothing.
    const isDue = now() >= lookAt || (lookAt !== NEVER && now() < lookedAt)
    if (isDue && !running && !signal.aborted) await publishOnce()
  }

  const stopLooking = isService ? runtime.every(TICK_MS, lookWhetherDue) : () => {}
  return {
    /** Notes that runs have ended, or a refresh: there may be news. */
    note(): void {
      if (lookAt === NEVER) lookAt = AT_ONCE
    },
    /** Publishes what is new, at once; for the end of a command. */
    async finish(): Promise<void> {
      if (lookAt !== NEVER && !signal.aborted) await publishOnce()
    },
    /** Stops what is in progress; the old file stays. */
    async close(): Promise<void> {
      stopLooking()
      stop.abort()
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
