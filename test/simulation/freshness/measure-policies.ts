import { type FreshnessSetting, measureFreshness } from './measure.ts'
import { POLICIES } from './policies.ts'
import { type FreshnessRow, summarize } from './table.ts'

export const SETTING: Omit<FreshnessSetting, 'order'> = {
  removals: 'oldest',
  life: 'orders',
  rows: 100_000,
  limit: 60,
  arrivals: 1,
  days: 4,
  killed: 0,
}

/** Measures each policy over the same list. */
export function* measurePolicies(setting: FreshnessSetting, seed = 1): Generator<FreshnessRow> {
  for (const [name, policy] of Object.entries(POLICIES))
    yield summarize(name, measureFreshness(policy, setting, seed))
}
