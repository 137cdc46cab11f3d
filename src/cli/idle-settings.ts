import type { Config } from '../config/config.ts'

/** Keys that are read and checked, and do nothing in this version. */
const IDLE_KEYS = ['publish', 'publishEvery', 'http', 'removals']

/** What the configuration asks for and this version does not do, each in a sentence that names the key. */
export function idleSettings(config: Pick<Config, 'setKeys' | 'organizations'>): string[] {
  const isSet = (key: string) => config.setKeys.some((set) => set === key || set.startsWith(`${key}.`))
  const idle = IDLE_KEYS.filter(isSet).map(
    (key) => `the configuration sets ${key}, which has no effect in this version yet`,
  )
  const collections = config.organizations.flatMap((organization) => organization.collections)
  const bounded = collections.filter(({ history }) => typeof history === 'number').map(({ name }) => name)
  const kept = [...new Set(bounded)].map(
    (name) => `the configuration bounds the history of ${name}; in this version it is kept for good`,
  )
  return [...idle, ...kept]
}
