import { fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { type Counts, sumOf } from './story.ts'

/** What a process of the simulation is to do. */
export interface ShardTask {
  seeds: readonly number[]
  /** The name of a planted bug: then the first failure is enough. */
  planted?: string | undefined
  /** Of the PostgreSQL server that has the mirrors, with the password; absent: they are files. */
  url?: string | undefined
}

/** How a history went. `story`: of one that failed, or of the only one. */
export interface Lived {
  seed: number
  complaint: string | null
  story: string
  counts: Counts
}

/** Runs a script in a process of its own, which takes the task and answers. Rejects where the script breaks down: it has said why. */
export function runChild<T>(script: string, task: object): Promise<T> {
  const child = fork(script, { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  child.send(task)
  return new Promise((resolve, reject) => {
    child.once('message', (result) => resolve(result as T))
    // After all that it has sent.
    child.once('close', (code) => reject(new Error(`a process of the simulation broke down (${code})`)))
  })
}

/** What such a script is to do. It ends by itself when its parent has died, and when it waits for nothing. */
export async function takeTask<T>(): Promise<T> {
  process.once('disconnect', () => process.exit(1))
  const [task] = (await once(process, 'message')) as [T]
  process.channel?.unref()
  return task
}

/** Answers the parent, and ends. */
export function answer(result: object): void {
  process.send?.(result, () => process.exit(0))
}

export function seedsFrom(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}

/** The first seed of many: of other histories each day, none of which the fast tests play, and all below those of scenes. */
export function rotatingFrom(most: number): number {
  return 2000 + most * (Math.floor(Date.now() / 86_400_000) % Math.floor(900_000 / most))
}

/** Lives through these seeds, in as many processes as there are cores. With a planted bug the first that finds it is enough. */
export async function runSeeds({ seeds, planted, url }: ShardTask) {
  const processes = planted ? 1 : Math.max(1, Math.min(availableParallelism(), seeds.length))
  const script = path.resolve(import.meta.dirname, 'shard.ts')
  const shares = await Promise.all(
    seedsFrom(0, processes).map((index) => {
      const task: ShardTask = { seeds: seeds.filter((_, at) => at % processes === index), planted, url }
      return runChild<Lived[]>(script, task)
    }),
  )
  const lived = shares.flat().toSorted((one, other) => one.seed - other.seed)
  const failures = lived.filter(({ complaint }) => complaint !== null)
  return {
    passed: lived.length - failures.length,
    failed: failures.length,
    first: failures[0] ?? null,
    counts: sumOf(lived.map(({ counts }) => counts)),
    lived,
  }
}
