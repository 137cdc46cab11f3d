import { counted } from '../../text.ts'
import type { Filters, Job, Page } from '../types.ts'
import { afterChanges, beginChanges, isRefusedQuestion } from './changed-since.ts'
import { momentIn } from './moment.ts'

export type Ask = (page: number, more: Filters) => Promise<Page>

export interface Tried {
  isHeeded: boolean
  /** What was seen. */
  text: string
}

/**
 * Asks for what changed since shortly before the youngest change on a page, as refreshes do: an API that gives older rows ignores the
 * parameter, and one that gives none leaves out what it should give. Null: nothing is configured.
 * @param page The first one of the list.
 */
export async function tryChanges(
  { collection }: Job,
  page: Page,
  ask: Ask,
  now: number,
): Promise<Tried | null> {
  const { changedSince: rules, ignore } = collection
  if (!rules) return null
  const { parameter, field } = rules
  const valuesOf = ({ items }: Page) => items.map(({ value }) => momentIn(value, field))
  const begun = beginChanges(undefined, rules, valuesOf(page), 0, now)
  if (page.items.length === 0) return { isHeeded: true, text: 'not tried, since the list is empty' }
  if (!begun.ask) return { isHeeded: false, text: `no row of the first page has a time in ${field}` }
  const { since } = begun.ask
  try {
    const answer = await ask(1, { [parameter]: since })
    const { off } = afterChanges(begun, { ...answer, values: valuesOf(answer) }, null, now)
    if (off !== null) return { isHeeded: false, text: off }
    if (answer.items.length === 0)
      return {
        isHeeded: false,
        text: `asked for what changed after ${since}, the API gave nothing, though a row did`,
      }
    const rows = counted(answer.total ?? answer.items.length, 'row')
    const unseen = ignore.includes(field)
      ? `; ${field} is in ignore, so nothing will show which changes it hides`
      : ''
    return {
      isHeeded: true,
      text: `${rows} changed after ${since}, says the API: it heeds ${parameter}${unseen}`,
    }
  } catch (error) {
    if (!isRefusedQuestion(error) || error.code === 'UNAUTHORIZED') throw error
    return { isHeeded: false, text: `the API refuses requests with ${parameter}: ${error.message}` }
  }
}
