import type { Random } from '../../simulation/random.ts'

/** What a process does: it yields the minute until which it waits. A killed one goes no further. */
export type Steps<T = void> = Generator<number, T, undefined>

export interface WorkersSetting {
  workers: number
  /** The part of their steps at which they are killed: while they wait for a request or an answer, or for something to do. */
  killedSteps: number
}

/** Minutes until another process takes the place of a killed one. */
const AWAY = 1

/**
 * Workers beside one another: yields the minute of each step and whose it is, and then takes it.
 * @param begin Returns all that a new process does. @param onKill What it held is free then.
 */
export function* workInTurn(
  { workers, killedSteps }: WorkersSetting,
  random: Random,
  begin: (worker: number) => Steps,
  onKill: (worker: number) => void,
): Generator<{ time: number; worker: number }, never, undefined> {
  const start = (worker: number, at: number) => ({ worker, at, steps: begin(worker) })
  const all = Array.from({ length: workers }, (_, worker) => start(worker, 0))
  for (;;) {
    const next = all.reduce((first, one) => (one.at < first.at ? one : first))
    const { worker, at, steps } = next
    yield { time: at, worker }
    if (random.chance(killedSteps)) {
      onKill(worker)
      all[worker] = start(worker, at + AWAY)
    } else next.at = steps.next().value ?? Number.POSITIVE_INFINITY
  }
}
