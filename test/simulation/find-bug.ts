import path from 'node:path'
import { patchedBy } from '../helpers/patch.ts'
import { runChild } from './child.ts'
import { measureKinds } from './coverage/measure-kinds.ts'
import type { Refreshed } from './freshness/shard.ts'
import type { Finding, PlantedBug } from './planted-bug.ts'
import { serverEnvironment } from './postgres/environment.ts'
import { runSeeds, type SeedRange } from './shards.ts'

/** What a planted bug was found by: the seed of a history, or none where many walks were measured. */
export interface FoundBug {
  seed: number | null
  complaint: string
}

/**
 * Looks for what a planted bug does, in these histories or where it is said to show. Null: nobody would notice it. `url`: of
 * the server that the histories use, with the password.
 */
export async function findBug(
  { patches, found }: PlantedBug,
  range: SeedRange,
  url: string | null = null,
): Promise<FoundBug | null> {
  const env = url === null ? patchedBy(...patches) : serverEnvironment(url, patches)
  if ('kind' in found) return findInWalks(found, env)
  if ('list' in found) return findInRefreshes(found, env)
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

const FRESHNESS_SHARD = path.resolve(import.meta.dirname, 'freshness/shard.ts')

async function findInRefreshes(
  { list, untrue, wrongRows }: Extract<Finding, { list: unknown }>,
  env: Record<string, string>,
): Promise<FoundBug | null> {
  const row = await runChild<Refreshed>(FRESHNESS_SHARD, [JSON.stringify(list)], env)
  const complaint = `${list.order}: ${row.untrue} of ${row.refreshes} claims are untrue, ${Math.round(row.wrongRows)} rows are wrong`
  return row.untrue > untrue || row.wrongRows > wrongRows ? { seed: null, complaint } : null
}
