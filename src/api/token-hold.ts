import { TokenRefusedError } from '../errors.ts'
import { onHold } from '../text.ts'

/** Keeps the hold of a refused token over restarts: in the mirror's `sync_refused_tokens` (store/core/tokens.ts). */
export interface HoldStore {
  /** Why the token is held, or null; as `refresh` read it last. */
  heldReason(): string | null
  refresh(): Promise<void>
  hold(reason: string): Promise<void>
}

export type TokenHold = ReturnType<typeof createTokenHold>

/**
 * Every request with a token passes here. After a 401 nothing more is sent with it, by any process, until `resume`.
 * @param resume What to type where the token is valid again.
 */
export function createTokenHold(store: HoldStore, resume: string) {
  /** Why a request of this process was refused, until the store knows it. */
  let refusedFor: string | null = null

  return {
    /** Reads what other processes know of the token. Call it right before `check`. */
    refresh: () => store.refresh(),
    /** Throws TokenRefusedError if the token must not be used. Call it right before the request is sent. */
    check(): void {
      const reason = refusedFor ?? store.heldReason()
      if (reason !== null) throw new TokenRefusedError(`${reason}. ${onHold(resume)}`)
    },
    async refused(why: string): Promise<void> {
      // Our own requests stop at once. Writing may have to wait for another process, and may fail.
      refusedFor = why
      await store.hold(why)
      refusedFor = null
    },
  }
}
