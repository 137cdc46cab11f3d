import type { Config } from '../config/config.ts'
import { createCounters } from '../listener/metrics.ts'
import { openListener, unusableSource } from '../listener/server.ts'
import type { Scheduler } from '../schedule/scheduler.ts'
import type { Job } from '../sync/types.ts'
import { openStatus, unusableNow } from './read-status.ts'
import type { Runtime } from './runtime.ts'
import type { CommandSession } from './session.ts'

export type Listening = Awaited<ReturnType<typeof listenFor>>

/** The listener of a `start`. Throws UsageError if the address cannot be used. */
export async function listenFor(config: Config, http: NonNullable<Config['http']>, runtime: Runtime) {
  const { now, elapsed } = runtime
  const listener = await openListener(http, elapsed)
  const counters = createCounters()

  return {
    onAnswer: ({ organization }: Job, status: number | null): void =>
      counters.request(organization.name, status),
    /** From now on it answers from this mirror. */
    serve(session: CommandSession, scheduler: Pick<Scheduler, 'isTicking'>): void {
      const { logger } = session
      listener.serve({
        health: async () => ({
          stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
          unusable: await unusableNow(session),
        }),
        status: () => openStatus(session, config, runtime),
        counters,
        onError: (err) => logger.error({ event: 'listener_failed', err }, 'the listener failed to answer'),
      })
      logger.info({ event: 'listening', url: listener.url }, `listening at ${listener.url}`)
    },
    /** Until a mirror is served, it answers that there is none to use, and why. */
    tellUnusable: (why: string): void => listener.serve(unusableSource(why, counters)),
    close: listener.close,
  }
}
