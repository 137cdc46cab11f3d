import type { Urgency } from '../../sync/types.ts'

/** Runs one task at a time: the most urgent first, and others in the order in which they came. */
export interface Turns {
  take<T>(urgency: Urgency, task: () => Promise<T>): Promise<T>
  isTaken(): boolean
}

const BY_URGENCY: readonly Urgency[] = ['refresh', 'walk', 'older']

export function createTurns(): Turns {
  const waiting: Record<Urgency, (() => Promise<void>)[]> = { refresh: [], walk: [], older: [] }
  let isRunning = false

  async function runWaiting(): Promise<void> {
    isRunning = true
    for (let next = mostUrgent(); next; next = mostUrgent()) await next()
    isRunning = false
  }

  function mostUrgent(): (() => Promise<void>) | undefined {
    return BY_URGENCY.map((urgency) => waiting[urgency])
      .find((line) => line.length > 0)
      ?.shift()
  }

  return {
    take: (urgency, task) =>
      new Promise((resolve, reject) => {
        waiting[urgency].push(() => task().then(resolve, reject))
        if (!isRunning) void runWaiting()
      }),
    isTaken: () => isRunning,
  }
}
