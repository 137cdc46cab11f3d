import { patchedBy } from '../helpers/patch.ts'
import { measureKinds } from './coverage/measure-kinds.ts'
import type { Finding, PlantedBug } from './planted.ts'
import { runSeeds, type SeedRange } from './shards.ts'

/** What a planted bug was found by: the seed of a history, or none where many walks were measured. */
export interface FoundBug {
  seed: number | null
  complaint: string
}

/** Looks for what a planted bug does, in these histories or where it is said to show. Null: nobody would notice it. */
export async function findBug({ patches, found }: PlantedBug, range: SeedRange): Promise<FoundBug | null> {
  const env = patchedBy(...patches)
  if ('kind' in found) return findInWalks(found, env)
  const { first } = await runSeeds({ ...range, env, stopAtFirst: true })
  return first && { seed: first.seed, complaint: first.complaint }
}

async function findInWalks(
  { kind, walks, missing, extra }: Extract<Finding, { kind: string }>,
  env: Record<string, string>,
): Promise<FoundBug | null> {
  for await (const row of measureKinds({ walks, kinds: [kind], env })) {
    const complaint = `${kind}: ${row.missing} % of trusted walks miss something, ${row.extra.mean} % extra requests`
    if (row.missing > missing || row.extra.mean > extra) return { seed: null, complaint }
  }
  return null
}
