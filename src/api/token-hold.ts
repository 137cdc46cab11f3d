import { TokenRefusedError } from '../errors.ts'
import { onHold } from '../text.ts'

/** Keeps the hold of a refused token over restarts: in the mirror's `organizations` (store/core/tokens.ts). */
export interface HoldStore {
  /** Why the token is held, or null; as `refresh` read it last, where there is one. */
  heldReason(): string | null
  /** Reads the hold, in a store where that takes time. */
  refresh?(): Promise<void>
  hold(reason: string): Promise<void>
}

export type TokenHold = ReturnType<typeof createTokenHold>

/**
 * Every request with a token passes here. After a 401 nothing more is sent with it, by any process, until `resume`.
 * @param resumeCommand What to type where the token is valid again; called for each request that is refused.
 */
export function createTokenHold(store: HoldStore, resumeCommand = () => 'admin-mirror resume') {
  /** Why a request of this process was refused. */
  let refusedFor: string | null = null
  let isWritten = false

  return {
    /** Reads what other processes know of the token. Call it right before `check`. */
    refresh: async () => store.refresh?.(),
    /** Throws TokenRefusedError if the token must not be used. Call it right before the request is sent. */
    check(): void {
      const kept = store.heldReason()
      // `resume`, in another process, has lifted the hold.
      if (isWritten && kept === null) refusedFor = null
      const reason = refusedFor ?? kept
      if (reason !== null) throw new TokenRefusedError(`${reason}. ${onHold(resumeCommand())}`)
    },
    async refused(why: string): Promise<void> {
      // Our own requests stop at once. Writing may have to wait for another process.
      refusedFor = why
      isWritten = false
      await store.hold(why)
      // A token file may change while its old token is refused. Then no organization is held, but jobs that began with the old token
      // must not send it again.
      isWritten = store.heldReason() !== null
    },
  }
}
