import { TokenRefusedError } from '../errors.ts'
import { onHold } from '../text.ts'

/** Keeps the hold of a refused token over restarts: in the mirror's `organizations` (store/core/tokens.ts). */
export interface HoldStore {
  /** Why the token is held, or null; as `refresh` read it last, where there is one. */
  heldReason(): string | null
  /** Reads the hold, in a store where that takes time. */
  refresh?(): Promise<void>
  hold(reason: string): Promise<void>
  lift(): Promise<void>
}

export type TokenHold = ReturnType<typeof createTokenHold>

/**
 * Every request with a token passes here. After a 401 nothing more is sent with it. A hold from an earlier
 * run lets one request through as a trial; the others wait for its response, and fail unless the token proves
 * valid.
 * @param resumeCommand What to type where the token is valid again; called for each request that is refused.
 */
export function createTokenHold(store: HoldStore, resumeCommand = () => 'admin-mirror resume') {
  let state: 'open' | 'held' | 'trying' | 'tried' | 'refused' = store.heldReason() === null ? 'open' : 'held'
  let reason = store.heldReason() ?? ''
  let waiting: (() => void)[] = []
  /** True while the store does not have the hold: the write is under way or failed, or no organization uses the token any more. */
  let isUnwritten = false

  function settle(next: typeof state): void {
    state = next
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  /** Throws TokenRefusedError if the token must not be used. Call it right before the request is sent. */
  function check(): void {
    // `resume`, in another process, may have lifted the hold.
    if (state === 'refused' && !isUnwritten && store.heldReason() === null) state = 'open'
    if (state === 'refused') throw refusal(reason, resumeCommand())
    // Another process on the same mirror may have got a 401.
    const heldElsewhere = state === 'open' ? store.heldReason() : null
    if (heldElsewhere !== null) throw refusal(heldElsewhere, resumeCommand())
    if (state === 'trying') state = 'tried'
  }

  /** True if the request that has entered tries a held token. It is not retried. */
  function isTrying(): boolean {
    return state === 'trying' || state === 'tried'
  }

  /** Waits while another request tries a held token. */
  async function enter(): Promise<void> {
    if (isTrying()) {
      await new Promise<void>((wake) => waiting.push(wake))
      // All that waited wake together, and only the first may try.
      return enter()
    }
    check()
    if (state === 'held') state = 'trying'
  }

  return {
    enter,
    /** Reads what other processes know of the token. Call it right before `check`. */
    refresh: async () => store.refresh?.(),
    check,
    isTrying,
    async refused(why: string): Promise<void> {
      // Our own requests stop at once. Writing may have to wait for another process.
      reason = why
      isUnwritten = true
      settle('refused')
      await store.hold(why)
      // A token file may change while its old token is refused. Then no organization is held, but jobs that began with the old token
      // must not send it again.
      isUnwritten = store.heldReason() === null
    },
    /** The response was 2xx or 403: the token is valid. */
    async accepted(): Promise<void> {
      if (!isTrying()) return
      await store.lift()
      settle('open')
    },
    /** The request was not sent, or its response says nothing about the token. */
    undecided(): void {
      if (isTrying()) settle(state === 'tried' ? 'refused' : 'held')
    },
  }
}

function refusal(reason: string, command: string): TokenRefusedError {
  return new TokenRefusedError(`${reason}. ${onHold(command)}`)
}
