import { budgetOf } from '../../api/rate/budget.ts'
import { allowedPerMinute, knownLimit } from '../../api/rate/decision.ts'
import type { Config } from '../../config/config.ts'
import type { BudgetUse } from '../../listener/overview.ts'
import type { StoredGate } from '../../store/overview.ts'
import type { HourOfRequests } from './counts.ts'

export interface BudgetFacts {
  config: Pick<Config, 'organizations' | 'rateLimit'>
  gates: readonly StoredGate[]
  /** By organization. */
  tokensUsed: ReadonlyMap<string, string | null>
  /** By organization. */
  lastHour: ReadonlyMap<string, HourOfRequests>
}

/** Who spends which budget, and how much of it. Scopes are fingerprints of tokens, and stay in here. */
export function budgetUses({ config, gates, tokensUsed, lastHour }: BudgetFacts): BudgetUse[] {
  const { rateLimit, organizations } = config
  const known = new Map(gates.map((gate) => [gate.scope, gate.known]))
  const scopeOf = (id: string) => {
    if (rateLimit.scope === 'all') return 'all'
    return rateLimit.scope === 'organization' ? id : (tokensUsed.get(id) ?? id)
  }
  const groups = Map.groupBy(organizations, ({ id }) => scopeOf(id))
  return [...groups].map(([scope, members]) => {
    const hours = members.flatMap(({ id }) => lastHour.get(id) ?? [])
    return {
      organizations: members.map(({ name }) => name),
      requests: hours.reduce((sum, { requests }) => sum + requests, 0),
      refused: hours.reduce((sum, { refused }) => sum + refused, 0),
      per_minute: allowedPerMinute(knownLimit(budgetOf(known.get(scope) ?? null, 0)), rateLimit),
    }
  })
}
