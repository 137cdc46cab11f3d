import { TokenRefusedError } from '../errors.ts'
import { onHold } from '../text.ts'

/** Keeps the hold of a refused token over restarts. */
export interface HoldStore {
  /** Why the token is held, or null; as `refresh` read it last, where there is one. */
  heldReason(): string | null
  /** Reads the hold, in a store where that takes time. */
  refresh?(): Promise<void>
  hold(reason: string): Promise<void>
  lift(): Promise<void>
}

/**
 * Every request with a token passes here. After a 401 nothing more is sent with it. A hold from an earlier
 * run lets one request through as a trial; the others wait for its response, and fail unless the token proves
 * valid.
 */
export interface TokenHold {
  /** Waits while another request tries a held token. */
  enter(): Promise<void>
  /** Reads what other processes know of the token. Call it right before `check`. */
  refresh(): Promise<void>
  /** Throws TokenRefusedError if the token must not be used. Call it right before the request is sent. */
  check(): void
  /** True if the request that has entered tries a held token. It is not retried. */
  isTrying(): boolean
  refused(reason: string): Promise<void>
  /** The response was 2xx or 403: the token is valid. */
  accepted(): Promise<void>
  /** The request was not sent, or its response says nothing about the token. */
  undecided(): void
}

/** @param resumeCommand What to type where the token is valid again; called for each request that is refused. */
export function createTokenHold(
  store: HoldStore,
  resumeCommand: () => string = () => 'admin-mirror resume',
): TokenHold {
  let state: 'open' | 'held' | 'trying' | 'tried' | 'refused' = store.heldReason() === null ? 'open' : 'held'
  let reason = store.heldReason() ?? ''
  let waiting: (() => void)[] = []
  /** True while a hold is not in the store: it is being written, could not be, or no organization uses the token any more. */
  let isUnwritten = false

  function settle(next: typeof state): void {
    state = next
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }

  function check(): void {
    // `resume`, in another process, may have lifted the hold.
    if (state === 'refused' && !isUnwritten && store.heldReason() === null) state = 'open'
    if (state === 'refused') throw refusal(reason, resumeCommand())
    // Another process on the same mirror may have got a 401.
    const heldElsewhere = state === 'open' ? store.heldReason() : null
    if (heldElsewhere !== null) throw refusal(heldElsewhere, resumeCommand())
    if (state === 'trying') state = 'tried'
  }

  function isTrying(): boolean {
    return state === 'trying' || state === 'tried'
  }

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
    refresh: async () => store.refresh?.(),
    check,
    isTrying,
    async refused(why) {
      // Our own requests stop at once. Writing may have to wait for another process.
      reason = why
      isUnwritten = true
      settle('refused')
      await store.hold(why)
      // A token file may change while its old token is refused. Then no organization is held, but jobs that began with the old token
      // must not send it again.
      isUnwritten = store.heldReason() === null
    },
    async accepted() {
      if (!isTrying()) return
      await store.lift()
      settle('open')
    },
    undecided() {
      if (isTrying()) settle(state === 'tried' ? 'refused' : 'held')
    },
  }
}

function refusal(reason: string, command: string): TokenRefusedError {
  return new TokenRefusedError(`${reason}. ${onHold(command)}`)
}
