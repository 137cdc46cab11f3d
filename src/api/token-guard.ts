import { TokenRefusedError } from '../errors.ts'

/** Where the hold that a refused token leaves is kept. */
export interface HoldMemory {
  /** Why the token is held, or null. */
  heldReason(): string | null
  hold(reason: string): void
  lift(): void
}

/**
 * Stands before every request of one token. After a 401 nothing more is sent with it. A hold from an earlier run lets
 * one request through, to see whether somebody has put things right; all others wait for its answer.
 */
export interface TokenGuard {
  /** Throws TokenRefusedError when the token must not be used; asked in the last moment before a request goes. */
  check(): void
  /** Waits while another request is trying a held token. */
  enter(): Promise<void>
  refused(reason: string): void
  /** The token was answered with 2xx or 403: it is valid. */
  accepted(): void
  /** The request got no answer that says anything of the token. */
  undecided(): void
}

export function createTokenGuard(memory: HoldMemory): TokenGuard {
  let state: 'open' | 'held' | 'trying' | 'refused' = memory.heldReason() === null ? 'open' : 'held'
  let reason = memory.heldReason() ?? ''
  let waiting: (() => void)[] = []

  function settle(next: typeof state): void {
    state = next
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  function check(): void {
    // Somebody may have lifted the hold meanwhile (resume, in another process).
    if (state === 'refused' && memory.heldReason() === null) state = 'open'
    if (state === 'refused') throw new TokenRefusedError(reason)
    // Another process on the same mirror may have met the 401.
    const heldElsewhere = state === 'open' ? memory.heldReason() : null
    if (heldElsewhere !== null) throw new TokenRefusedError(heldElsewhere)
  }

  async function enter(): Promise<void> {
    while (state === 'trying') await new Promise<void>((wake) => waiting.push(wake))
    check()
    if (state === 'held') state = 'trying'
  }

  return {
    check,
    enter,
    refused(why) {
      reason = why
      memory.hold(why)
      settle('refused')
    },
    accepted() {
      if (state !== 'trying') return
      memory.lift()
      settle('open')
    },
    undecided() {
      if (state === 'trying') settle('held')
    },
  }
}
