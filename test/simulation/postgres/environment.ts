import { type Patch, patchedBy } from '../../helpers/patch.ts'

/**
 * A process that waits for the owner of a list looks four times a second, for an hour at times. Each look is a statement that
 * a real server answers, and almost no other time of a history is spent so: with this it looks each five seconds.
 */
const SELDOM_LOOKS: Patch = {
  file: 'src/sync/lease/acquire.ts',
  find: 'FIRST_LOOK_MS = 250\nconst LONGEST_LOOK_MS = 2000',
  replace: 'FIRST_LOOK_MS = 5000\nconst LONGEST_LOOK_MS = 5000',
}

/** What a shard needs to live through histories on a server, with these mistakes in the program. `url`: with the password. */
export function serverEnvironment(url: string, patches: readonly Patch[] = []): Record<string, string> {
  return { SIMULATION_POSTGRES: url, ...patchedBy(SELDOM_LOOKS, ...patches) }
}
