import { MirrorError, MirrorLostError } from '../errors.ts'

export interface HoldWriting {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Aborted when the process was told to stop, which ends no waiting here. */
  signal: AbortSignal
  /** Called when the hold could not be written yet: at first, then once a minute, and once after the signal. */
  onWait: (error: MirrorError) => void
}

/** After a try that failed at once (a full disk); one that waits for a lock takes 30 seconds by itself. */
const TRY_EVERY_MS = 500

const REPORT_EVERY_MS = 60_000

/**
 * Writes the hold of a refused token as soon as the mirror can be written, however long that takes: a process that ended
 * before would leave the next one to send the token again. Returns whether it had to wait. Throws MirrorLostError where
 * this process can never write the mirror again.
 */
export async function untilHoldIsWritten(write: () => Promise<void>, options: HoldWriting): Promise<boolean> {
  const { now, sleep, signal, onWait } = options
  let reportedAt: number | null = null
  let isStopReported = false
  for (;;) {
    try {
      await write()
      return reportedAt !== null
    } catch (error) {
      if (!(error instanceof MirrorError) || error instanceof MirrorLostError) throw error
      const isStopNews = signal.aborted && !isStopReported
      if (reportedAt === null || isStopNews || now() - reportedAt >= REPORT_EVERY_MS) {
        onWait(error)
        reportedAt = now()
        isStopReported = signal.aborted
      }
    }
    await sleep(TRY_EVERY_MS)
  }
}
