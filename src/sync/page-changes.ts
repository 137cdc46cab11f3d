import { parseExact } from '../json/exact.ts'
import { asJsonObject, differingFields, sameJson } from '../json/value.ts'
import { counted } from '../text.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { PageChanges, Store, Upsert } from './store.ts'
import type { Job, Notice, Page } from './types.ts'
import type { PageResult } from './walk.ts'

// What a page changes in the mirror: that of a walk, and that of a refresh.

/** What a page changes, and what is stored of each of its items now. */
export async function compareWithStore(
  store: Pick<Store, 'lookup'>,
  job: Job,
  page: Page,
  items: readonly ListedItem[],
): Promise<{ changes: PageChanges; stored: StoredItem[] }> {
  const stored = await store.lookup(job, items)
  const upserts = changedItems(items, stored, new Set(job.collection.ignore))
  const rejects = rejectsOf(items)
  const keys = items.flatMap((listed) => ('key' in listed ? [listed.key] : []))
  return { changes: { page: page.number, items: page.items.length, keys, upserts, rejects }, stored }
}

export function pageResult(
  { page, upserts, rejects }: PageChanges,
  notices: readonly Notice[],
): Required<PageResult> {
  const added = upserts.filter(({ change }) => change === 'added').length
  return {
    added,
    changed: upserts.length - added,
    rejected: rejects.length,
    notices: [...notices, ...rejectNotice(page, rejects)],
    upserts,
  }
}

interface Reject {
  id: string
  reason: string
  text: string
}

function rejectsOf(items: readonly ListedItem[]): Reject[] {
  return items.flatMap((listed) =>
    'reject' in listed ? [{ id: listed.id, reason: listed.reject, text: listed.item.text }] : [],
  )
}

/** The log line about items without a usable key: how many, and why the first one has none. */
function rejectNotice(page: number, rejects: readonly Reject[]): Notice[] {
  const [first] = rejects
  if (!first) return []
  const many = `${counted(rejects.length, 'item')} of page ${page} ${rejects.length === 1 ? 'has' : 'have'} no usable key`
  return [
    {
      level: 'warn',
      message: `${many} (${first.reason}) and ${rejects.length === 1 ? 'is' : 'are'} kept only in sync_rejects`,
    },
  ]
}

/**
 * Returns the items of a page to write: new ones, and those with another value.
 * @param stored One entry for each item.
 * @param ignore Dotted paths whose changes do not count.
 */
function changedItems(
  items: readonly ListedItem[],
  stored: readonly StoredItem[],
  ignore: ReadonlySet<string>,
): Upsert[] {
  return items.flatMap((listed, index): Upsert[] => {
    const known = stored[index]
    if (!('key' in listed) || known === undefined || known.state === 'same') return []
    const { key, item } = listed
    const value = asJsonObject(item.value)
    const upsert = { key, text: item.text, value }
    if (known.state === 'absent') return [{ ...upsert, change: 'added' }]
    const before = parseExact(known.text)
    if (sameJson(before, value, ignore)) return []
    return [{ ...upsert, change: 'changed', fields: differingFields(before, value, ignore) }]
  })
}
