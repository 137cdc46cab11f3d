import type { VirtualClock } from '../../simulation/clock.ts'
import type { Setting } from './play.ts'

/** The tokens' budgets: a request leaves as soon as its token allows, in the order in which they came. */
export interface Budgets {
  /** Resolves with the answer. */
  request(token: string): Promise<void>
  /** By token: the share of the requests that its budget allowed from then until its last one. */
  used(from: number): number[]
}

export function createBudgets(
  clock: Pick<VirtualClock, 'now' | 'after'>,
  { perMinute, latencyMs }: Pick<Setting, 'perMinute' | 'latencyMs'>,
): Budgets {
  const spacing = 60_000 / perMinute
  const tokens = new Map<string, { next: number; sent: number }>()
  const pass = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve))
  return {
    request(token) {
      const known = tokens.get(token) ?? { next: 0, sent: 0 }
      tokens.set(token, known)
      const leavesAt = Math.max(clock.now(), known.next)
      known.next = leavesAt + spacing
      known.sent++
      return pass(leavesAt - clock.now() + latencyMs)
    },
    used: (from) => [...tokens.values()].map(({ next, sent }) => (sent * spacing) / (next - from)),
  }
}
