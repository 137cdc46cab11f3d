import type { Patch } from '../helpers/patch.ts'
import type { Order } from './freshness/living-list.ts'
import type { FreshnessSetting } from './freshness/measure.ts'

/** Where a mistake shows. */
export type Finding =
  /** In the history of this seed. */
  | { seed: number }
  /** In so many walks over lists that move in this way: more than so many percent of the trusted ones miss something, or ask for so many pages more. */
  | { kind: string; walks: number; missing: number; extra: number }
  /** Where a list of 5,000 rows is refreshed: more refreshes claim what is not true, or more rows are wrong at a random moment. */
  | { list: FreshList; untrue: number; wrongRows: number }

/** A list, and how it is read. */
export interface FreshList extends Partial<FreshnessSetting> {
  order: Order
  policy: string
}

/** A mistake that the simulation must find. */
export interface PlantedBug {
  name: string
  patches: Patch[]
  found: Finding
}

type Change = [file: string, find: string, replace: string]

/** @param found The seed of a history, or where else it shows. */
export function bug(name: string, found: number | Finding, ...patches: Change[]): PlantedBug {
  return {
    name,
    found: typeof found === 'number' ? { seed: found } : found,
    patches: patches.map(([file, find, replace]) => ({ file: `src/${file}`, find, replace })),
  }
}
