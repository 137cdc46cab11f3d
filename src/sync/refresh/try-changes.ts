import type { Filters, Job, Page } from '../types.ts'
import { afterChanges, beginChanges, DAY, isRefusal } from './changed-since.ts'
import { momentIn, readMoment } from './moment.ts'

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
  if (page.items.length === 0) return { isHeeded: true, text: 'not tried, since the list is empty' }
  const mark = readMoment(begun.ask?.since)
  if (!begun.ask || !mark)
    return { isHeeded: false, text: `no row of the first page has a time in ${rules.field}` }
  const since = mark.write(Math.max(mark.ms, now + DAY))
  try {
    const answer = await ask(1, { [rules.parameter]: since })
    const { off } = afterChanges(
      { ...begun, ask: { ...begun.ask, since } },
      { ...answer, values: valuesOf(answer) },
      null,
      now,
    )
    if (off !== null || answer.items.length > 0)
      return {
        isHeeded: false,
        text: off ?? `the API gave rows though it was asked for what changes after ${since}`,
      }
    return {
      isHeeded: true,
      text: `nothing changed after ${since}, and so says the API: it heeds ${rules.parameter}`,
    }
  } catch (error) {
    if (!isRefusal(error) || error.code === 'UNAUTHORIZED') throw error
    return { isHeeded: false, text: `the API refuses requests with ${rules.parameter}: ${error.message}` }
  }
}
