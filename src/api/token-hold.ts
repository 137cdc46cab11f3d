import { TokenRefusedError } from '../errors.ts'
import { onHold } from '../text.ts'

/** Keeps the hold of a refused token over restarts: in the mirror's `sync_refused_tokens` (store/core/tokens.ts). */
export interface HoldStore {
  /** Why the token is held, or null. */
  heldReason(): Promise<string | null>
  hold(reason: string): Promise<void>
}

export type TokenHold = ReturnType<typeof createTokenHold>

/**
 * Every request with a token passes here. After a 401 nothing more is sent with it, by any process, until `resume`.
 * @param resume What to type where the token is valid again.
 */
export function createTokenHold(store: HoldStore, resume: string) {
  /** Why it is held, as far as is known. */
  let held: string | null = null
  /** Whether the store knows it. */
  let isWritten = true
  let writes = 0

  async function refused(why: string): Promise<void> {
    // Our own requests stop at once. Writing may have to wait for another process, and may fail.
    held = why
    isWritten = false
    await store.hold(why)
    isWritten = true
    writes++
  }

  /** Reads what other processes know of the token. Call it right before `check`. */
  async function refresh(): Promise<void> {
    const before = writes
    const reason = await store.heldReason()
    // An answer that was on its way while this process wrote a hold may not know it.
    if (isWritten && writes === before) held = reason
  }

  return {
    resume,
    refused,
    refresh,
    /** As `refresh`, where a run begins: writes the hold that could not be written before. Returns why the token is held, or null. */
    async begin(): Promise<string | null> {
      if (held !== null && !isWritten) await refused(held)
      await refresh()
      return held
    },
    /** Throws TokenRefusedError if the token must not be used. Call it right before the request is sent. */
    check(): void {
      if (held !== null) throw new TokenRefusedError(`${held.replace(/\.$/, '')}. ${onHold(resume)}`, resume)
    },
  }
}
