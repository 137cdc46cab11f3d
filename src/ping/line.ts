import type { PingKind } from './send.ts'

/** For one try. Milliseconds. */
const LIMIT_MS = 10_000

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
 * Delivers each ping in at most three tries of ten seconds. What a later ping says better is tried no further: the start of
 * a run that is over, an outcome that another one follows. So nobody waits for more than 45 seconds.
 */
export function createLine(options: LineOptions): Line {
  const { send, sleep, onLost, onSent, signal, limitMs = LIMIT_MS } = options
  let told = 0
  let lastOutcome = 0
  let tail = Promise.resolve()

  async function deliver(kind: PingKind, text: string, number: number): Promise<void> {
    const isOutdated = () => (kind === 'start' ? told : lastOutcome) > number
    for (let failures = 0; !signal.aborted; failures++) {
      if (isOutdated()) return
      try {
        await send(kind, text, AbortSignal.any([signal, AbortSignal.timeout(limitMs)]))
        return onSent(kind)
      } catch (error) {
        const pause = PAUSES_MS[failures]
        if (signal.aborted) return
        if (pause === undefined) return onLost(kind, error instanceof Error ? error.message : 'unknown')
        await sleep(pause, signal).catch(() => {})
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
