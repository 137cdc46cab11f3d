import type { Filters, Job, Page } from '../types.ts'
import { afterChanges, beginChanges } from './changed-since.ts'
import { momentIn } from './moment.ts'

export type Ask = (page: number, more: Filters) => Promise<Page>

export interface Tried {
  isHeeded: boolean
  /** What was seen. */
  text: string
}

/**
 * Asks for changes to come, as refreshes do once a day: an API that gives any ignores the parameter. Null: nothing is configured.
 * @param page The first one of the list.
 */
export async function tryChanges(
  { collection }: Job,
  page: Page,
  ask: Ask,
  now: number,
): Promise<Tried | null> {
  const { changedSince: rules } = collection
  if (!rules) return null
  const valuesOf = ({ items }: Page) => items.map(({ value }) => momentIn(value, rules.field))
  const begun = beginChanges(undefined, rules, valuesOf(page), 0, now)
  if (begun.off !== null) return { isHeeded: false, text: begun.off }
  if (!begun.ask) return { isHeeded: true, text: 'not tried, since the list is empty' }
  const { since } = begun.ask
  try {
    const answer = await ask(1, { [rules.parameter]: since })
    const { off } = afterChanges(begun, { ...answer, values: valuesOf(answer) }, null, now)
    if (off !== null) return { isHeeded: false, text: off }
    return {
      isHeeded: true,
      text: `nothing changed after ${since}, and so says the API: it heeds ${rules.parameter}`,
    }
  } catch (error) {
    return {
      isHeeded: false,
      text: `not tried to the end: ${error instanceof Error ? error.message : 'unknown'}`,
    }
  }
}
