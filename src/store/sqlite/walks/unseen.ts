import type { Job } from '../../../sync/types.ts'
import { packTexts } from '../../../text.ts'
import type { KeyValues, RawRows } from '../tables/raw-rows.ts'

/** Goes through the rows of a job for those that a reading has not seen. */
export interface Unseen {
  /** Looks at up to so many rows, and tells the marks of those. True when there are no more. */
  step(rows: number, tell: (mark: string) => void): boolean
}

/** `rows`: as they are declared at this moment. */
export function createUnseen(
  rows: () => RawRows | null,
  { organization }: Job,
  isSeen: (mark: string) => boolean,
): Unseen {
  let last: KeyValues | null = null
  let types = ''

  return {
    step(count, tell) {
      const raw = rows()
      if (!raw) return true
      // A key column that became TEXT meanwhile, by a sync of another organization, has another order.
      if (String(raw.keyTypes) !== types) last = null
      types = String(raw.keyTypes)
      const keys = raw.keysAfter(organization.id, last, count)
      for (const key of keys) {
        const mark = packTexts(key.map(String))
        if (!isSeen(mark)) tell(mark)
      }
      last = keys.at(-1) ?? last
      return keys.length < count
    },
  }
}
