import { type RateRules, shareOf } from './budget.ts'

/** Requests a minute that may be sent over a long time; null where neither the server nor the configuration limits them. */
export function allowedPerMinute(
  limit: number | null,
  rules: Pick<RateRules, 'requestsPerMinute' | 'sharePercent'>,
): number | null {
  const { requestsPerMinute: most } = rules
  const share = limit === null ? null : shareOf(limit, rules)
  const ceiling = most === null || most < 1 ? most : Math.floor(most)
  return share === null || ceiling === null ? (ceiling ?? share) : Math.min(ceiling, share)
}
