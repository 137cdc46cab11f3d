import type { PingKind } from './send.ts'

/** For one try. Milliseconds. */
const LIMIT_MS = 10_000

/** For one try of a start that the run's end already waits behind. */
const LATE_LIMIT_MS = 500

/** Before the second and the third try. */
const PAUSES_MS = [1000, 2000]

export interface LineOptions {
  send: (kind: PingKind, text: string, signal: AbortSignal) => Promise<void>
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  /** A ping that could not be delivered, and why. */
  onLost: (kind: PingKind, reason: string) => void
  onSent: (kind: PingKind) => void
  /** Aborted when the process is told to stop: then no ping is worth a wait. */
  signal: AbortSignal
  limitMs?: number
}

/** The pings to one address, one after another. */
export interface Line {
  tell(kind: PingKind, text: string): void
  /** Resolves when nothing is left to send. */
  idle(): Promise<void>
}

/**
 * Delivers each ping in at most three tries of ten seconds. An outcome that another one follows is tried no further. The start
 * of a run that is over has its other tries at once, and short ones. So nobody waits for more than 45 seconds.
 */
export function createLine(options: LineOptions): Line {
  const { send, sleep, onLost, onSent, signal, limitMs = LIMIT_MS } = options
  let told = 0
  let lastOutcome = 0
  let tail = Promise.resolve()

  async function deliver(kind: PingKind, text: string, number: number): Promise<void> {
    const isLate = () => kind === 'start' && told > number
    for (let failures = 0; !signal.aborted; failures++) {
      if (kind !== 'start' && lastOutcome > number) return
      const limit = isLate() ? Math.min(LATE_LIMIT_MS, limitMs) : limitMs
      try {
        await send(kind, text, AbortSignal.any([signal, AbortSignal.timeout(limit)]))
        return onSent(kind)
      } catch (error) {
        const pause = PAUSES_MS[failures]
        if (signal.aborted) return
        if (pause === undefined) return onLost(kind, error instanceof Error ? error.message : 'unknown')
        if (!isLate()) await sleep(pause, signal).catch(() => {})
      }
    }
  }

  return {
    tell(kind, text) {
      const number = ++told
      if (kind !== 'start') lastOutcome = number
      tail = tail.then(() => deliver(kind, text, number))
    },
    idle: () => tail,
  }
}
