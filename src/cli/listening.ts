import type { Config } from '../config/config.ts'
import { MirrorError } from '../errors.ts'
import { openListener } from '../listener/server.ts'
import type { Scheduler } from '../schedule/scheduler.ts'
import type { JobResult } from '../sync/job.ts'
import type { Job } from '../sync/types.ts'
import { openStatus, unusableNow } from './read-status.ts'
import type { Runtime } from './runtime.ts'
import type { CommandSession } from './session.ts'

export type Listening = Awaited<ReturnType<typeof listenFor>>

/** The listener of a `start`. Throws UsageError if the address cannot be used. */
export async function listenFor(config: Config, http: NonNullable<Config['http']>, runtime: Runtime) {
  const { now, elapsed } = runtime
  const listener = await openListener(http, elapsed)
  /** Why the last run that tried could not use the mirror, until it can be written again. */
  let fault: string | null = null

  async function unusable(session: CommandSession): Promise<string | null> {
    // Not waited for: a lock may hold it up for half a minute.
    if (fault !== null)
      void session.leases.beat().then(
        () => {
          fault = null
        },
        () => {},
      )
    return (await unusableNow(session)) ?? fault
  }

  return {
    onResult({ error }: JobResult): void {
      if (error instanceof MirrorError) fault = error.message
    },
    onAnswer: ({ organization }: Job, status: number | null): void =>
      listener.onAnswer(organization.name, status),
    /** From now on it answers from this mirror. */
    serve(session: CommandSession, scheduler: Pick<Scheduler, 'isTicking'>): void {
      const { logger } = session
      listener.serve({
        health: async () => ({
          stalled: scheduler.isTicking(now()) ? null : 'the scheduler has not woken when it should have',
          unusable: await unusable(session),
        }),
        status: () => openStatus(session, config, runtime, unusable(session)),
        onError: (err) => logger.error({ event: 'listener_failed', err }, 'the listener failed to answer'),
      })
      logger.info({ event: 'listening', url: listener.url }, `listening at ${listener.url}`)
    },
    tellUnusable: listener.tellUnusable,
    close: listener.close,
  }
}
