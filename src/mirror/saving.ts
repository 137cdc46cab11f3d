import { sameJson } from '../json/compare.ts'
import { parseExact } from '../json/exact.ts'
import { asJsonObject, type JsonObject } from '../json/value.ts'
import type { ListedItem } from '../sync/items.ts'
import type { KeyPart } from '../sync/key.ts'
import type { PageCommit, SavedPage } from '../sync/types.ts'
import { counted } from '../text.ts'
import type { CollectionTables, RawRow } from './collection.ts'
import type { TypedRow } from './columns/row.ts'
import type { Connection } from './database.ts'
import type { JobStore } from './job-store.ts'
import type { MissingStore } from './missing.ts'
import type { Outcome } from './room.ts'
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

/** Writes all that a page brings, inside the caller's transaction. */
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

  /** Returns what has to become of the columns first, if anything; nothing is written then. */
  return (toSave: PageCommit, tables: CollectionTables, at: string): Outcome<SavedPage> => {
    const { job, walk, run, page, items, newToWalk, entry, next } = toSave
    const upserts = items.flatMap((item) => ('key' in item ? upsertsOf(toSave, item, tables) : []))
    const placement = tables.place(
      keysOf(items),
      upserts.map(({ value }) => value),
    )
    if (placement.changes) return placement
    const saved = nothingSaved()
    for (const [index, upsert] of upserts.entries()) {
      const typed = placement.rows[index]
      if (typed) saveItem(toSave, upsert, typed, tables, at, saved)
    }
    const rejects = items.filter((item) => 'reject' in item)
    const newRejects = rejects.filter((item) => saveReject(toSave, item, at)).length
    saved.rejected = rejects.length
    saved.notices.push(...tables.extendViews(placement.rows), ...rejectNotice(toSave))
    walks.addAnswer(walk.id, entry, newToWalk, next, at)
    if (newRejects > 0) walks.addNewRejects(walk.id, newRejects)
    runs.addPage(run, page.items.length, saved)
    jobs.addRows(job, saved.added)
    jobs.readFrom(job)
    noteSeen(toSave, idsOf(toSave))
    return { result: saved, notices: placement.notices }
  }
}

/** An item that is written, since the mirror has no row of its key, or another one. */
interface Upsert {
  key: readonly KeyPart[]
  text: string
  value: JsonObject
  row: RawRow | undefined
}

/** None where the row holds the same item. */
function upsertsOf(
  { job: { organization, collection } }: PageCommit,
  { item, key: { parts: key } }: Extract<ListedItem, { key: unknown }>,
  tables: CollectionTables,
): Upsert[] {
  const { text } = item
  const row = tables.find(organization.id, key)
  if (row?._json === text) return []
  const value = asJsonObject(item.value)
  const isSame = row && sameJson(parseExact(row._json), value, new Set(collection.ignore))
  return isSame ? [] : [{ key, text, value, row }]
}

function saveItem(
  toSave: PageCommit,
  { key, text, row }: Upsert,
  typed: TypedRow,
  tables: CollectionTables,
  at: string,
  saved: SavedPage,
): void {
  const { organization, collection } = toSave.job
  if (!row) {
    tables.insert(organization.id, key, text, typed, at)
    saved.added++
  } else {
    tables.update(organization.id, key, row, text, typed, at, collection.history !== false)
    saved.changed++
  }
}

function nothingSaved(): SavedPage {
  return { added: 0, changed: 0, rejected: 0, notices: [] }
}

/** What the log says of items that cannot be placed: how many, and why the first one. */
function rejectNotice({ items, page }: PageCommit): SavedPage['notices'] {
  const reasons = items.flatMap((item) => ('reject' in item ? [item.reject] : []))
  if (reasons.length === 0) return []
  const many = `${counted(reasons.length, 'item')} of page ${page.number} cannot be placed`
  return [{ level: 'warn', message: `${many} (${reasons[0]}), and kept in sync_rejects alone` }]
}

function keysOf(items: readonly ListedItem[]): (readonly KeyPart[])[] {
  return items.flatMap((item) => ('key' in item ? [item.key.parts] : []))
}

function idsOf({ items }: PageCommit): string[] {
  return items.flatMap((item) => ('key' in item ? [item.id] : []))
}
