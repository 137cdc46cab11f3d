/** Whose turn it is to use the server, and whether anybody still waits for it. */
export interface Turns {
  /** Waits until nobody else is inside; false where it is not wanted any more by then. */
  enter(client: object, isWanted: () => boolean): Promise<boolean>
  /** Lets the next one in, if this one is inside. */
  leave(client: object): void
  isInside(client: object): boolean
  beginTransaction(client: object): void
  isTransaction(client: object): boolean
  /** Something is under way until the promise is settled. */
  busyWith<T>(promise: Promise<T>): Promise<T>
  /** Something is under way until `done` is called. */
  until(begin: (done: () => void) => void): void
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

export function createTurns(): Turns {
  let inside: object | null = null
  let isTransaction = false
  let busy = 0
  const waiting: (() => void)[] = []
  let onIdle: (() => void)[] = []

  function begin(): () => void {
    busy++
    let isDone = false
    return () => {
      if (isDone) return
      isDone = true
      busy--
      if (busy > 0) return
      for (const wake of onIdle) wake()
      onIdle = []
    }
  }

  function leave(client: object): void {
    if (inside !== client) return
    inside = null
    isTransaction = false
    waiting.shift()?.()
  }

  return {
    async enter(client, isWanted) {
      if (inside === client && isTransaction) return isWanted()
      const done = begin()
      // oxlint-disable-next-line no-unmodified-loop-condition -- others change it meanwhile
      while (inside !== null) await new Promise<void>((wake) => waiting.push(wake))
      done()
      if (!isWanted()) {
        waiting.shift()?.()
        return false
      }
      inside = client
      return true
    },
    leave,
    isInside: (client) => inside === client,
    beginTransaction(client) {
      if (inside === client) isTransaction = true
    },
    isTransaction: (client) => inside === client && isTransaction,
    async busyWith(promise) {
      const done = begin()
      try {
        return await promise
      } finally {
        done()
      }
    },
    until: (start) => start(begin()),
    async settled() {
      for (let quiet = 0; quiet < 3; ) {
        await new Promise((resolve) => setImmediate(resolve))
        if (busy === 0) quiet++
        else {
          quiet = 0
          await new Promise<void>((wake) => onIdle.push(wake))
        }
      }
    },
  }
}
