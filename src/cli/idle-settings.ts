import type { Config } from '../config/config.ts'

/** What the configuration asks for and this version does not do, each in a sentence that names the key. */
export function idleSettings({ publish, http }: Pick<Config, 'publish' | 'http'>): string[] {
  const idle = [publish === null ? [] : ['publish'], http === null ? [] : ['http']].flat()
  return idle.map((key) => `the configuration sets ${key}, which has no effect in this version yet`)
}
