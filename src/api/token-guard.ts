import { TokenRefusedError } from '../errors.ts'

/** Where the hold that a refused token leaves is kept. */
export interface HoldMemory {
  /** Why the token is held, or null. */
  heldReason(): string | null
  hold(reason: string): Promise<void>
  lift(): Promise<void>
}

/**
 * Stands before every request of one token. After a 401 nothing more is sent with it. A hold from an earlier run lets
 * one request through, to see whether somebody has put things right; all others wait for its answer, and stop unless it
 * shows that the token is valid.
 */
export interface TokenGuard {
  /** Waits while another request is trying a held token. */
  enter(): Promise<void>
  /** Throws TokenRefusedError when the token must not be used; asked in the last moment before a request goes. */
  check(): void
  /** Whether the request that has entered is the one that tries a held token: it is made once. */
  isTrying(): boolean
  refused(reason: string): Promise<void>
  /** The token was answered with 2xx or 403: it is valid. */
  accepted(): Promise<void>
  /** The request was not made, or got no answer that says anything of the token. */
  undecided(): void
}

export function createTokenGuard(memory: HoldMemory): TokenGuard {
  let state: 'open' | 'held' | 'trying' | 'tried' | 'refused' = memory.heldReason() === null ? 'open' : 'held'
  let reason = memory.heldReason() ?? ''
  let waiting: (() => void)[] = []
  /** Whether a hold stands only here: it is being written, or could not be. */
  let isUnwritten = false

  function settle(next: typeof state): void {
    state = next
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  function check(): void {
    // Somebody may have lifted the hold meanwhile (resume, in another process).
    if (state === 'refused' && !isUnwritten && memory.heldReason() === null) state = 'open'
    if (state === 'refused') throw refusal(reason)
    // Another process on the same mirror may have met the 401.
    const heldElsewhere = state === 'open' ? memory.heldReason() : null
    if (heldElsewhere !== null) throw refusal(heldElsewhere)
    if (state === 'trying') state = 'tried'
  }

  function isTrying(): boolean {
    return state === 'trying' || state === 'tried'
  }

  async function enter(): Promise<void> {
    if (isTrying()) {
      await new Promise<void>((wake) => waiting.push(wake))
      // Of those that are woken together the first may try.
      return enter()
    }
    check()
    if (state === 'held') state = 'trying'
  }

  return {
    enter,
    check,
    isTrying,
    async refused(why) {
      // Our own requests stop at once; writing it may have to wait for another process.
      reason = why
      isUnwritten = true
      settle('refused')
      await memory.hold(why)
      isUnwritten = false
    },
    async accepted() {
      if (!isTrying()) return
      await memory.lift()
      settle('open')
    },
    undecided() {
      if (isTrying()) settle(state === 'tried' ? 'refused' : 'held')
    },
  }
}

function refusal(reason: string): TokenRefusedError {
  return new TokenRefusedError(
    `${reason}; nothing is sent with it. Put a new token into the configuration, or run "admin-mirror resume" if it is valid again`,
  )
}
