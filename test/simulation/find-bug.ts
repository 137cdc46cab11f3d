import { runSeeds, type SeedRange } from './shards.ts'

/** What a planted bug was found by. */
export interface FoundBug {
  seed: number
  complaint: string
}

/** Looks for what a planted bug does in these histories. Null: none of them shows it. */
export async function findBug(name: string, seeds: SeedRange): Promise<FoundBug | null> {
  const { first } = await runSeeds({ ...seeds, planted: name, stopAtFirst: true })
  return first && { seed: first.seed, complaint: first.complaint }
}
