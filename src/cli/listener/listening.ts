import type { AnswerNote } from '../../api/client.ts'
import type { Config } from '../../config/config.ts'
import { openListener } from '../../listener/listener.ts'
import type { Scheduler } from '../../schedule/scheduler.ts'
import type { JobResult } from '../../sync/job.ts'
import type { Runtime } from '../runtime.ts'
import type { CommandSession } from '../with-session.ts'
import { createCounts } from './counts.ts'
import { createSource, type MirrorSource } from './source.ts'

/** The listener of a `start`. */
export interface Listening {
  onAnswer(answer: AnswerNote): void
  onResult(result: JobResult): void
  /** From now on it answers from this mirror. */
  serve(session: CommandSession, scheduler: Scheduler): Promise<void>
  close(): Promise<void>
}

/** Listens where the configuration says. Throws UsageError if the port cannot be had. */
export async function listenFor(
  config: Config,
  address: { host: string; port: number },
  runtime: Runtime,
  configOption: string,
): Promise<Listening> {
  const { now, sleep, every } = runtime
  const listener = await openListener({ ...address, now, sleep, every })
  const counts = createCounts(now)
  let source: MirrorSource | null = null
  return {
    onAnswer: counts.onAnswer,
    onResult(result) {
      counts.onResult(result)
      source?.onResult(result)
    },
    async serve(session, scheduler) {
      source = createSource({ served: await session.serve(), config, scheduler, counts, configOption, now })
      listener.serve(source, (error) =>
        session.logger.error({ event: 'listener_failed', err: error }, 'the listener failed to answer'),
      )
      session.logger.info({ event: 'listening', url: listener.url }, 'listening')
    },
    close: listener.close,
  }
}
