import { availableParallelism } from 'node:os'
import process from 'node:process'
import { readTask, runChild } from '../../simulation/shards.ts'
import { kindNamed } from './kinds.ts'
import { type History, live } from './measure.ts'
import { type CoverageRow, summarize } from './table.ts'

export interface Measuring {
  /** Walks of each kind; each two are a pair over one list. */
  walks: number
  kinds: readonly string[]
}

/** Measures some walks of each kind, in as many processes as there are cores. */
export async function* measureKinds({ walks, kinds }: Measuring): AsyncGenerator<CoverageRow> {
  const pairs = Math.ceil(walks / 2)
  const processes = Math.max(1, Math.min(availableParallelism(), pairs))
  for (const kind of kinds) {
    const shares = await Promise.all(
      Array.from({ length: processes }, (_, index) =>
        runChild<History[]>(import.meta.filename, { kind, from: index + 1, end: pairs + 1, step: processes }),
      ),
    )
    yield summarize(kind, shares.flat())
  }
}

// As one of these processes: plays histories of a kind.
if (import.meta.main) {
  const { kind, from, end, step } = await readTask<{
    kind: string
    from: number
    end: number
    step: number
  }>()
  const histories: History[] = []
  for (let seed = from; seed < end; seed += step) histories.push(live(kindNamed(kind), seed))
  process.stdout.write(JSON.stringify(histories))
}
