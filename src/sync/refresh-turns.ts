/** A list whose refresh is due. */
export interface DueRefresh {
  organizationId: string
  collection: string
  /** Names the rate budget. */
  budget: string
  /** For how long the refresh uses up the share, in milliseconds. */
  needs: number
  /** Milliseconds between two refreshes of the list. */
  interval: number
}

/** Which refreshes may begin, so that all who share a budget keep to its share over an hour. */
export interface RefreshTurns {
  /** So many lists are taken at once at most, so that other processes get some, too. */
  most: number
  /**
   * Takes the first of these lists as far as the share has room for them, and notes that their refreshes begin now.
   * @param isOwn Whether this process has the leases of the lists. Otherwise none is taken that another process reads, or took
   * less than its interval ago.
   */
  take<L extends DueRefresh>(due: readonly L[], now: number, isOwn: boolean): Promise<TakenTurns<L>>
}

export interface TakenTurns<L extends DueRefresh> {
  taken: readonly L[]
  /** Lists that another process has, or had less than their interval ago. */
  others: readonly L[]
  /** By budget: when its share has room for another refresh. Epoch milliseconds. */
  freeAt: ReadonlyMap<string, number>
}

/** The share of a budget has no room until then, as far as this process knows. Epoch milliseconds. */
export interface SharePause {
  notedAt: number
  until: number
}

/** When to ask again for a turn: at once if there is no pause, or the clock was set back since. */
export function endOfPause(pause: SharePause | undefined, now: number): number {
  return pause && now >= pause.notedAt ? pause.until : Number.NEGATIVE_INFINITY
}

/** The turns of one list. `ask` takes a turn and returns null, or returns the time before which it is not called again. */
export function createTurn(ask: (cost: number | null) => Promise<number | null> | null, now: () => number) {
  let pause: SharePause | undefined
  return {
    mayAsk: () => endOfPause(pause, now()) <= now(),
    async take(cost: number | null): Promise<boolean> {
      const until = await ask(cost)
      if (until !== null) pause = { notedAt: now(), until }
      return until === null
    },
  }
}
