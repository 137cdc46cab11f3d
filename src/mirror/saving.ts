import { asJsonObject, parseExact } from '../json/exact.ts'
import { sameJson } from '../json/same.ts'
import type { ListedItem } from '../sync/items.ts'
import type { PageCommit, SavedPage } from '../sync/types.ts'
import { counted } from '../text.ts'
import type { CollectionTables } from './collection.ts'
import type { Connection } from './database.ts'
import type { JobStore } from './job-store.ts'
import type { MissingStore } from './missing.ts'
import type { RunStore } from './run-store.ts'
import type { SeenSince } from './seen-since.ts'
import type { WalkStore } from './walk-store.ts'

export interface PageSaving {
  connection: Connection
  walks: WalkStore
  runs: RunStore
  jobs: JobStore
  missing: MissingStore
  seenSince: SeenSince
}

/** Writes all that a page brings, inside the caller's transaction: `tables` have room for its keys. */
export function createPageSaving({ connection, walks, runs, jobs, missing, seenSince }: PageSaving) {
  const renewReject = connection.prepare(`
    UPDATE sync_rejects SET seen_at = ? WHERE organization_id = ? AND collection = ? AND fingerprint = ?
  `)
  const addReject = connection.prepare(`
    INSERT INTO sync_rejects (organization_id, collection, page, reason, json, seen_at, fingerprint)
    VALUES (?, ?, ?, ?, ?, ?, ?)
  `)

  /** Whether it had never come before. */
  function saveReject(
    { job: { organization, collection }, page }: PageCommit,
    { item, id, reject }: Extract<ListedItem, { reject: string }>,
    at: string,
  ): boolean {
    if (renewReject.run(at, organization.id, collection.name, id).changes > 0) return false
    addReject.run(organization.id, collection.name, page.number, reject, item.text, at, id)
    return true
  }

  /** An item that is seen again is missing no longer, whatever walk it was that saw it. */
  function noteSeen({ job, walk }: PageCommit, marks: readonly string[]): void {
    seenSince.note(job, walk.id, marks)
    if (!missing.has(job)) return
    const states = marks.map((mark) => missing.drop(job, mark))
    jobs.addHeld(job, -states.filter((state) => state === 'held').length)
  }

  return (toSave: PageCommit, tables: CollectionTables, at: string): SavedPage => {
    const { job, walk, run, page, items, newToWalk, entry, next } = toSave
    const saved = nothingSaved()
    let newRejects = 0
    for (const listed of items) {
      if ('key' in listed) saveItem(toSave, listed, tables, at, saved)
      else {
        saved.rejected++
        if (saveReject(toSave, listed, at)) newRejects++
      }
    }
    saved.notices.push(...rejectNotice(toSave))
    walks.addAnswer(walk.id, entry, newToWalk, next, at)
    if (newRejects > 0) walks.addNewRejects(walk.id, newRejects)
    runs.addPage(run, page.items.length, saved)
    jobs.addRows(job, saved.added)
    jobs.readFrom(job)
    noteSeen(toSave, idsOf(toSave))
    return saved
  }
}

function saveItem(
  toSave: PageCommit,
  { item, key }: Extract<ListedItem, { key: unknown }>,
  tables: CollectionTables,
  at: string,
  saved: SavedPage,
): void {
  const { organization, collection } = toSave.job
  const { text } = item
  const row = tables.find(organization.id, key.parts)
  if (row?._json === text) return
  const value = asJsonObject(item.value)
  if (!row) {
    saved.notices.push(...tables.insert(organization.id, key.parts, text, value, at))
    saved.added++
  } else if (!sameJson(parseExact(row._json), value, new Set(collection.ignore))) {
    const keep = collection.history !== false
    saved.notices.push(...tables.update(organization.id, key.parts, row, text, value, at, keep))
    saved.changed++
  }
}

export function nothingSaved(): SavedPage {
  return { added: 0, changed: 0, rejected: 0, notices: [] }
}

/** What the log says of items that cannot be placed: how many, and why the first one. */
function rejectNotice({ items, page }: PageCommit): SavedPage['notices'] {
  const reasons = items.flatMap((item) => ('reject' in item ? [item.reject] : []))
  if (reasons.length === 0) return []
  const many = `${counted(reasons.length, 'item')} of page ${page.number} cannot be placed`
  return [{ level: 'warn', message: `${many} (${reasons[0]}), and kept in sync_rejects alone` }]
}

function idsOf({ items }: PageCommit): string[] {
  return items.flatMap((item) => ('key' in item ? [item.id] : []))
}
