import { availableParallelism } from 'node:os'
import { answer, runChild, takeTask } from '../../simulation/shards.ts'
import { kindNamed } from './kinds.ts'
import { type History, live } from './measure.ts'
import { rowText } from './table.ts'

interface Task {
  kind: string
  from: number
  end: number
  step: number
}

/** Measures some walks of each kind, each two of which are a pair over one list, in as many processes as there are cores. */
export async function* measureKinds(walks: number, kinds: readonly string[]): AsyncGenerator<string> {
  const pairs = Math.ceil(walks / 2)
  const step = Math.max(1, Math.min(availableParallelism(), pairs))
  for (const kind of kinds) {
    const tasks = Array.from(
      { length: step },
      (_, index): Task => ({
        kind,
        from: index + 1,
        end: pairs + 1,
        step,
      }),
    )
    const shares = await Promise.all(tasks.map((task) => runChild<History[]>(import.meta.filename, task)))
    yield rowText(kind, shares.flat())
  }
}

// As one of these processes: plays histories of a kind.
if (import.meta.main) {
  const { kind, from, end, step } = await takeTask<Task>()
  const histories: History[] = []
  for (let seed = from; seed < end; seed += step) histories.push(live(kindNamed(kind), seed))
  answer(histories)
}
