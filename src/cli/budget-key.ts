import type { Config } from '../config/config.ts'

/**
 * Names the budget that an organization's requests spend.
 * @param token The fingerprint of its token; without one, it has a budget of its own.
 */
export function budgetKey(
  { rateLimit }: Pick<Config, 'rateLimit'>,
  organization: string,
  token: string | null,
): string {
  return { all: 'all', organization, token: token ?? organization }[rateLimit.scope]
}
