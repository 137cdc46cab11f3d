import fs from 'node:fs'
import type { Logger } from 'pino'
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import { InterruptedError } from '../errors.ts'
import {
  type Making,
  type MirrorState,
  type NextPublication,
  nextPublication,
  type Publication,
} from '../store/core/publication.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import {
  type HashedFile,
  hashFile,
  isUnchanged,
  type Origin,
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

/** The mirror and the version of the program: if either is another one, the file is made again. */
export function makerOf(origin: Origin | null): unknown {
  return [origin?.id ?? null, manifest.version]
}

export interface PublisherOptions {
  /** The file, as `publish` names it. */
  target: string
  config: Pick<Config, 'publishEvery' | 'publishMode'>
  runtime: Pick<Runtime, 'now' | 'every' | 'signal' | 'pid' | 'randomHex'>
  logger: Logger
  publishing: Publishing
  /** A service publishes by itself when it is time; a command at its end. */
  isService: boolean
}

/** How often a service sees whether it is time to look. */
const TICK_MS = 1000

/** Times of the next look. */
const [AT_ONCE, NEVER] = [0, Number.POSITIVE_INFINITY]

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
  const { now, pid, randomHex } = runtime
  const stop = new AbortController()
  const signal = AbortSignal.any([runtime.signal, stop.signal])
  const pace = isService ? publishEvery : null
  /** When to look again. A service that was stopped before it published does so now. */
  let lookAt = isService ? AT_ONCE : NEVER
  let lookedAt = 0
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

  /** Looks, unless another worker publishes right now, and writes what is due. */
  async function publishDue(): Promise<void> {
    const begun = now()
    lookedAt = begun
    lookAt = NEVER
    try {
      const hadTurn = await source.alone(async () => {
        const found = await look()
        const next = found && nextPublication(found, pace, now())
        if (!next) return
        // If it is due now, this looks once more: the file may lack what is written meanwhile.
        lookAt = next.at
        if (next.at > now()) return
        await write(found, next.what)
        failed = null
      })
      if (hadTurn) return
      logger.debug({ event: 'publish_elsewhere', file: target }, 'another worker publishes')
    } catch (error) {
      tell(error)
      failed = { at: begun, tookMs: now() - begun }
    }
    lookAt = begun + (pace ?? 0)
  }

  async function write({ state, hashed, at }: Found, what: NextPublication['what']): Promise<void> {
    const begunAt = now()
    if (what === 'numbers' && hashed) {
      if (writeFreshness(hashed, state, at, newLockName(pid, randomHex)))
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
    // A clock that was set back delays nothing.
    const isDue = now() >= lookAt || (lookAt !== NEVER && now() < lookedAt)
    if (isDue && !running && !signal.aborted) await publishOnce()
  }

  function noteNews(): void {
    if (lookAt === NEVER) lookAt = AT_ONCE
  }

  const stopLooking = isService ? runtime.every(TICK_MS, lookWhetherDue) : () => {}
  return {
    /** Notes jobs that ended: what they read may be news. */
    note(results: readonly Pick<JobResult, 'walk' | 'error'>[]): void {
      if (results.some(({ walk, error }) => walk?.kind === 'full' && error === null)) noteNews()
    },
    noteRefresh: noteNews,
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

/** The file without links; null: there is none. */
function fileOf(target: string): string | null {
  try {
    return fs.realpathSync(target)
  } catch {
    return null
  }
}
