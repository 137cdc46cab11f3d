import type { AnswerNote } from '../api/client.ts'
import type { Config } from '../config/config.ts'
import { KnownError, MirrorError } from '../errors.ts'
import { createCounters } from '../listener/metrics.ts'
import { openListener, type Source } from '../listener/server.ts'
import type { Scheduler } from '../schedule/scheduler.ts'
import type { JobResult } from '../sync/job.ts'
import type { OpenMirror } from './mirror.ts'
import { mirrorStatus } from './read-status.ts'
import type { CommandSession } from './session.ts'

export type Listening = Awaited<ReturnType<typeof listenFor>>

/** The listener of a `start`, on the configured address. Throws UsageError if the port cannot be used. */
export async function listenFor(
  config: () => Config,
  address: { host: string; port: number },
  now: () => number,
) {
  const listener = await openListener(address, now)
  const counters = createCounters()
  const faults = createFaults()
  return {
    onAnswer: ({ job: { organization }, status }: AnswerNote): void =>
      counters.request(organization.name, status),
    onResult: faults.note,
    /** From now on it answers from this mirror. */
    async serve(served: CommandSession, scheduler: Pick<Scheduler, 'isTicking'>): Promise<void> {
      listener.serve({
        ...createSource({ served, config, scheduler, fault: faults.last, now }),
        counters,
        onError: (error) =>
          served.logger.error({ event: 'listener_failed', err: error }, 'the listener failed to answer'),
      })
      served.logger.info({ event: 'listening', url: listener.url }, `listening at ${listener.url}`)
    },
    /** Until a mirror is served, it answers that there is none to use, and why. */
    tellUnusable(why: string): void {
      listener.serve({
        health: async () => ({ stalled: null, unusable: why }),
        status: () => Promise.reject(new MirrorError(why)),
        counters,
        onError: () => {},
      })
    },
    close: listener.close,
  }
}

/** Why the last run that tried could not use the mirror. */
export function createFaults() {
  let fault: string | null = null
  return {
    note({ error, run }: Pick<JobResult, 'error' | 'run'>): void {
      if (error instanceof MirrorError) fault = error.message
      // A job that is busy elsewhere has not tried.
      else if (run !== null) fault = null
    },
    last: () => fault,
  }
}

interface SourceOptions {
  served: Pick<OpenMirror, 'probe' | 'writeFault' | 'facts'>
  /** As its file is now. */
  config: () => Config
  scheduler: Pick<Scheduler, 'isTicking'>
  fault: () => string | null
  now: () => number
}

/** What the listener answers from. */
export function createSource({
  served,
  config,
  scheduler,
  fault,
  now,
}: SourceOptions): Pick<Source, 'health' | 'status'> {
  const { database } = config()

  async function unusable(): Promise<string | null> {
    try {
      await served.probe()
      return fault() ?? served.writeFault()
    } catch (error) {
      return error instanceof KnownError ? error.message : `${database} cannot be read`
    }
  }

  return {
    health: async () => ({
      stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
      unusable: await unusable(),
    }),
    async status() {
      const [facts, reason] = await Promise.all([served.facts(), unusable()])
      return mirrorStatus(facts, { database, config: config(), now: now(), unusable: reason })
    },
  }
}
