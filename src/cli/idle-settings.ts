import type { Config } from '../config/config.ts'

/** Keys that are read and checked, and do nothing in this version. */
const IDLE_KEYS = ['publish', 'publishEvery', 'http']

/** What the configuration asks for and this version does not do, each in a sentence that names the key. */
export function idleSettings(config: Pick<Config, 'setKeys'>): string[] {
  const isSet = (key: string) => config.setKeys.some((set) => set === key || set.startsWith(`${key}.`))
  return IDLE_KEYS.filter(isSet).map(
    (key) => `the configuration sets ${key}, which has no effect in this version yet`,
  )
}
