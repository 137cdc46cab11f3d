import { availableParallelism } from 'node:os'
import path from 'node:path'
import { runChild } from '../../simulation/child.ts'
import type { Lived } from './shard.ts'
import { type CoverageRow, summarize } from './table.ts'

const SHARD = path.resolve(import.meta.dirname, 'shard.ts')

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
        runChild<Lived>(SHARD, [kind, index + 1, pairs + 1, processes].map(String)),
      ),
    )
    yield summarize(kind, shares.flat())
  }
}
