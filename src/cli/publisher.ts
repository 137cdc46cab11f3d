import fs from 'node:fs'
import type { Logger } from 'pino'
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import type { MirrorState } from '../store/core/publication.ts'
import { type Making, nextPublication, type Publication } from '../store/core/publication.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import type { Origin } from '../store/sqlite/publish/numbers.ts'
import {
  type HashedFile,
  hashFile,
  isUnchanged,
  readNumbers,
  writeFreshness,
} from '../store/sqlite/publish/numbers.ts'
import { numbersFile } from '../store/sqlite/publish/place.ts'
import type { CopyResult, CopyTask } from '../store/sqlite/publish/publish.ts'
import type { JobResult } from '../sync/job.ts'
import type { Runtime } from './runtime.ts'

export type Publisher = ReturnType<typeof createPublisher>

/** How a file is made of a mirror. */
export interface Publishing {
  /** What the mirror holds now. Throws MirrorError. */
  state(): Promise<MirrorState>
  /** Runs a task unless another worker publishes right now: then it returns false. */
  alone(task: () => Promise<void>): Promise<boolean>
  /** Makes and places the file. Throws as `startCopy`. */
  copy(
    task: Pick<CopyTask, 'target' | 'mode'> & { contents: string; begunAt: number },
    signal: AbortSignal,
  ): Promise<CopyResult>
}

/** What the file is made from and by: for another mirror, or by another version of the program, it is made again. */
export function makerOf(origin: Origin | null): unknown {
  return [origin?.id ?? null, manifest.version]
}

export interface PublisherOptions {
  /** The file, as `publish` names it. */
  target: string
  config: Pick<Config, 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal' | 'pid' | 'newToken'>
  logger: Logger
  publishing: Publishing
  /** A service publishes by itself when it is time; a command at its end. */
  isService: boolean
}

/** How often a service looks whether it is time. */
const LOOK_FOR_NEWS_EVERY_MS = 1000

/** What the mirror holds, and what is published of it. */
interface Found extends Publication {
  state: MirrorState
  /** When the state was read. */
  at: number
  /** The file, if NAME.json says that it shows what the mirror holds; else null. */
  hashed: HashedFile | null
}

/** Keeps the published file and NAME.json up to date. Nothing here fails a run: what goes wrong is a warning in the log. */
export function createPublisher({
  target,
  config,
  runtime,
  logger,
  publishing: source,
  isService,
}: PublisherOptions) {
  const { publishEvery, publishMode } = config
  const { now, pid, newToken } = runtime
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  const pace = isService ? publishEvery : null
  // A service that was stopped before it published does so now.
  let hasNews = isService
  /** What is to be published when it is time. */
  let waiting: Publication | null = null
  let failed: Making | null = null
  let lastHashed: HashedFile | null = null
  let running: Promise<void> | null = null

  /** Null while no list was read to its end. */
  async function look(): Promise<Found | null> {
    const at = now()
    const found = await source.state()
    // With another mode the file is made again, too.
    const state = { ...found, contents: `${found.contents}-${publishMode.toString(8)}` }
    if (state.jobs.every((job) => job.as_of === null)) return null
    const file = fileOf(target)
    const numbers = file === null ? null : readNumbers(numbersFile(file))
    const hashed = file !== null && numbers?.contents === state.contents ? await hashOnce(file) : null
    const isAbout = numbers !== null && numbers.sha256 === hashed?.sha256
    const made = numbers && { at: Date.parse(numbers.created_at), tookMs: numbers.duration_ms ?? 0 }
    return {
      state,
      at,
      hashed: isAbout ? hashed : null,
      mirror: { contents: state.contents, freshness: JSON.stringify(state.jobs) },
      published: isAbout ? { contents: state.contents, freshness: JSON.stringify(numbers.jobs) } : null,
      made: made && !Number.isNaN(made.at) ? made : null,
      toldAt: numbers?.current_at ? Date.parse(numbers.current_at) : null,
      failed,
    }
  }

  async function hashOnce(file: string): Promise<HashedFile | null> {
    if (lastHashed?.file !== file || !isUnchanged(lastHashed)) lastHashed = await hashFile(file, signal)
    return lastHashed
  }

  /** Looks, and writes what is due. */
  async function publishDue(): Promise<void> {
    const begun = now()
    hasNews = false
    waiting = null
    try {
      const found = await look()
      const next = found && nextPublication(found, pace, now())
      if (next && next.at > now()) waiting = found
      if (!next || next.at > now()) return
      // Looks again, since another worker may have published before this one gets its turn.
      const hadTurn = await source.alone(async () => write(await look()))
      failed = hadTurn ? null : { at: begun, tookMs: 0 }
      if (!hadTurn) logger.debug({ event: 'publish_elsewhere', file: target }, 'another worker publishes')
      // The file may lack what was written meanwhile.
      hasNews = true
    } catch (error) {
      failed = { at: begun, tookMs: now() - begun }
      waiting = { ...NOTHING_KNOWN, failed }
      tell(error)
    }
  }

  /** Writes what is due. */
  async function write(found: Found | null): Promise<void> {
    const next = found && nextPublication(found, pace, now())
    if (!next || next.at > now()) return
    const { state, hashed, at } = found
    const begunAt = now()
    if (next.what === 'numbers' && hashed) {
      if (writeFreshness(hashed, state, at, newLockName(pid, newToken)))
        logger[isService ? 'debug' : 'info'](
          { event: 'published_freshness', file: numbersFile(target), duration_ms: now() - begunAt },
          'the file is up to date; only how fresh it is was written',
        )
      return
    }
    const task = { target, mode: publishMode, contents: state.contents, begunAt }
    const { rows, bytes, isPlaced } = await source.copy(task, signal)
    const fields = { event: 'published', file: target, rows, bytes, duration_ms: now() - begunAt }
    if (isPlaced) logger.info(fields, 'published')
    else
      logger.info(
        { ...fields, event: 'publish_skipped' },
        'not published, since another process has published a later state',
      )
  }

  function tell(error: unknown): void {
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

  function publishOnce(): Promise<void> {
    running ??= publishDue().finally(() => {
      running = null
    })
    return running
  }

  async function lookWhetherDue(): Promise<void> {
    if (running || signal.aborted || (!hasNews && !waiting)) return
    const next = waiting && nextPublication(waiting, pace, now())
    if (!next || next.at <= now()) await publishOnce()
  }

  const stopLooking = isService ? runtime.every(LOOK_FOR_NEWS_EVERY_MS, lookWhetherDue) : () => {}
  return {
    /** Notes jobs that ended: what they read may be news. */
    note(results: readonly Pick<JobResult, 'walk' | 'error'>[]): void {
      if (results.some(({ walk, error }) => walk?.kind === 'full' && error === null)) hasNews = true
    },
    noteRefresh(): void {
      hasNews = true
    },
    /** Publishes what is new, at once; for the end of a command. */
    async finish(): Promise<void> {
      if (hasNews && !signal.aborted) await publishOnce()
    },
    /** Stops what is in progress; the old file stays. */
    async close(): Promise<void> {
      stopLooking()
      stop.abort()
      await running
    },
  }
}

/** After a failure: the next look finds out what there is to publish. */
const NOTHING_KNOWN: Publication = {
  mirror: { contents: '', freshness: '' },
  published: null,
  made: null,
  toldAt: null,
  failed: null,
}

/** The file without links; null: there is none. */
function fileOf(target: string): string | null {
  try {
    return fs.realpathSync(target)
  } catch {
    return null
  }
}
