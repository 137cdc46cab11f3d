import { CHANGES } from './changes.ts'
import { type FreshnessSetting, measureFreshness, oneList } from './measure.ts'
import { POLICIES, policyNamed } from './policies.ts'
import { type FreshnessRow, summarize } from './table.ts'

export const SETTING: Omit<FreshnessSetting, 'order'> = {
  removals: 'oldest',
  life: 'orders',
  rows: 100_000,
  limit: 60,
  arrivals: 1,
  before: 2,
  days: 3,
  killed: 0,
}

/** Measures each policy over the same list, or one of them. */
export function* measurePolicies(
  setting: FreshnessSetting,
  names: readonly string[] = Object.keys(POLICIES),
  seed = 1,
): Generator<FreshnessRow> {
  for (const name of names) yield summarize(name, measureFreshness(policyNamed(name), oneList(setting), seed))
}

/** Measures a share of 10 % over the same list, each time with an API that is asked for changes and answers in another way. */
export function* measureChanges(
  setting: FreshnessSetting,
  names: readonly string[] = Object.keys(CHANGES),
  seed = 1,
): Generator<FreshnessRow> {
  for (const name of names) {
    const list = oneList({ ...setting, changes: CHANGES[name] })
    yield summarize(name, measureFreshness(policyNamed('share 10 %'), list, seed))
  }
}

/** Refreshes that were finished, and those of them whose claim was not true. */
export interface Claims {
  refreshes: number
  untrue: number
}

/** Without older pages, which find rows that refreshes have missed. */
const REFRESHES_ONLY = policyNamed('a walk a day, a refresh each 5 minutes')

/** Counts the claims of at least so many refreshes, over lists of their own. */
export function countClaims(setting: FreshnessSetting, least: number): Claims {
  const claims = { refreshes: 0, untrue: 0 }
  for (let seed = 1; claims.refreshes < least; seed++) {
    const { refreshes, untrue } = measureFreshness(REFRESHES_ONLY, oneList(setting), seed)
    claims.refreshes += refreshes
    claims.untrue += untrue
  }
  return claims
}
