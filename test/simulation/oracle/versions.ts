import { itemText, type ListItem, type SimulatedList } from '../list.ts'
import { createStock, type OracleContext, type Row, splitJob } from './context.ts'
import type { PageInHand } from './ledger.ts'

interface Version {
  version: number
  text: string
  from: string
}

export interface SavedRows {
  added: number
  changed: number
}

/**
 * Promise 6: every version that was ever live is in the live table or in the history, once, and the times of one key's
 * versions join without gap or overlap.
 */
export function watchVersions({ now, mirror, complain }: OracleContext) {
  /** By job and key, the oldest first. */
  const saved = createStock((_job: string) => new Map<number, Version[]>())

  /** Takes note of a page that was committed just now, and looks whether its rows are there. */
  function onSaved({ request, page }: PageInHand): SavedRows {
    const { job } = request
    const counts = { added: 0, changed: 0 }
    for (const item of page.items) {
      const outcome = note(job, item)
      if (outcome) counts[outcome]++
    }
    const [organization, collection] = splitJob(job)
    const ids = page.items.map(({ id }) => id)
    const rows = mirror.rows(
      `SELECT * FROM ${collection}_raw WHERE _organization_id = ? AND id IN (SELECT value FROM json_each(?))`,
      organization,
      JSON.stringify(ids),
    )
    for (const id of ids)
      compareLive(
        job,
        id,
        rows.find((row) => row.id === id),
      )
    return counts
  }

  function note(job: string, item: ListItem): keyof SavedRows | null {
    const versions = saved.of(job).get(item.id) ?? []
    const last = versions.at(-1)
    if (last?.version === item.version) return null
    versions.push({ version: item.version, text: itemText(item), from: new Date(now()).toISOString() })
    saved.of(job).set(item.id, versions)
    return last ? 'changed' : 'added'
  }

  function compareLive(job: string, id: number, row: Row | undefined): void {
    const versions = saved.of(job).get(id) ?? []
    const [first, live] = [versions[0], versions.at(-1)]
    if (!row) {
      complain(`item ${id} was read and is not in the mirror`, job)
      return
    }
    if (row._json !== live?.text)
      complain(`item ${id} is ${String(row._json)} in the mirror and should be ${live?.text}`, job)
    if (row._changed_at !== live?.from || row._first_seen_at !== first?.from)
      complain(`item ${id} has been so since ${String(row._changed_at)}, and should since ${live?.from}`, job)
  }

  /** The whole mirror against all that was written. */
  function compareAll(jobs: readonly string[]): void {
    for (const job of jobs) compareJob(job)
  }

  function compareJob(job: string): void {
    const [organization, collection] = splitJob(job)
    const count = mirror.value(
      'SELECT rows FROM sync_jobs WHERE organization_id = ? AND collection = ?',
      organization,
      collection,
    )
    const keys = [...saved.of(job).keys()]
    if (count !== undefined && count !== keys.length)
      complain(`${keys.length} items are live, and sync_jobs counts ${Number(count)}`, job)
    if (keys.length === 0) return
    const rows = mirror.rows(`SELECT * FROM ${collection}_raw WHERE _organization_id = ?`, organization)
    if (rows.length !== keys.length) complain(`${rows.length} rows stand for ${keys.length} items`, job)
    for (const id of keys)
      compareLive(
        job,
        id,
        rows.find((row) => row.id === id),
      )
    compareTyped(job, organization, collection)
    compareHistory(job, organization, collection)
  }

  function compareTyped(job: string, organization: string, collection: string): void {
    const typed = mirror.rows(
      `SELECT id, version, _first_seen_at, _changed_at FROM ${collection} WHERE _organization_id = ? ORDER BY id`,
      organization,
    )
    const live = [...saved.of(job)].map(([id, versions]) => {
      const last = versions.at(-1)
      return { id, version: last?.version, _first_seen_at: versions[0]?.from, _changed_at: last?.from }
    })
    const expected = live.toSorted((a, b) => a.id - b.id)
    if (JSON.stringify(typed) !== JSON.stringify(expected))
      complain('the typed rows are not the live versions', job)
  }

  function compareHistory(job: string, organization: string, collection: string): void {
    const rows = mirror.rows(
      `SELECT id, _json, _valid_from, _valid_to, _reason FROM ${collection}_history
       WHERE _organization_id = ? ORDER BY id, _valid_from, _valid_to, rowid`,
      organization,
    )
    const expected = [...saved.of(job)]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([id, versions]) =>
        versions.slice(0, -1).map((version, index) => ended(id, version, versions[index + 1])),
      )
    if (JSON.stringify(rows) === JSON.stringify(expected)) return
    complain(`the history is ${JSON.stringify(rows)}, and should be ${JSON.stringify(expected)}`, job)
  }

  /** After a complete walk of a server that has come to rest, mirror and list are equal. */
  function compareLists(lists: ReadonlyMap<string, SimulatedList>): void {
    for (const [job, { items }] of lists) {
      for (const { id, version } of items) {
        const live = saved.of(job).get(id)?.at(-1)
        if (live?.version !== version)
          complain(`item ${id} is not in the mirror as it stands in the list`, job)
      }
    }
  }

  return { onSaved, compareAll, compareLists }
}

function ended(id: number, { text, from }: Version, next: Version | undefined): Row {
  return { id, _json: text, _valid_from: from, _valid_to: next?.from, _reason: 'changed' }
}
