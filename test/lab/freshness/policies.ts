/** When lists are read. Minutes; null for never. */
export interface Policy {
  /** 0: one full walk after another. */
  walkEvery: number
  refreshEvery: number | null
  /** Percent of the limit that refreshes may use. */
  share: number
  /** Whether older pages are read too. */
  readsOlder: boolean
}

const HOUR = 60
const DAY = 24 * HOUR

const WALKS: Policy = { walkEvery: DAY, refreshEvery: null, share: 10, readsOlder: false }
const REFRESH: Policy = { ...WALKS, refreshEvery: 5 }
const BANDS: Policy = { ...REFRESH, readsOlder: true }

const POLICIES: Record<string, Policy> = {
  'walks back to back': { ...WALKS, walkEvery: 0 },
  'a walk a day': WALKS,
  'a walk each 6 hours': { ...WALKS, walkEvery: 6 * HOUR },
  'a walk a day, a refresh a minute': { ...REFRESH, refreshEvery: 1 },
  'a walk a day, a refresh each 5 minutes': REFRESH,
  'a walk a day, a refresh each 15 minutes': { ...REFRESH, refreshEvery: 15 },
  'the same each 5 minutes, share 2 %': { ...BANDS, share: 2 },
  'share 5 %': { ...BANDS, share: 5 },
  'share 10 %': BANDS,
  'share 20 %': { ...BANDS, share: 20 },
}

export function policyNamed(name: string): Policy {
  const policy = POLICIES[name]
  if (!policy) throw new Error(`there is no policy ${name}`)
  return policy
}
