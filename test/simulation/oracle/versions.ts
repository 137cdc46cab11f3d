import { listenWith } from '../happening.ts'
import { isListed, itemText, type ListFilters, type ListItem, type SimulatedList } from '../list.ts'
import { jobName } from '../traffic.ts'
import { createStock, type OracleContext, type Row, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'

interface JobTimes {
  /** Of the last page that whoever has the job must know of: its own, a walk's, or that of a finished refresh. */
  last: string
  /** Of the last page of a refresh. */
  refreshed: string
}

/**
 * The times that pages are written with: now; but where the clock was set back, none is before a page of the job that is
 * known, and each page of a refresh is later than all of them.
 */
export function watchTimes({ wall, mirror, wasLockedSince, complain }: OracleContext) {
  const jobs = createStock((_job: string): JobTimes => ({ last: '', refreshed: '' }))
  const isoNow = () => new Date(wall.now()).toISOString()

  /** Nobody waited for the mirror, and no clock was set back: a page is written in the moment in which it comes. */
  function isExact({ came, request: { process } }: PageInHand): boolean {
    if (process.wasCut() || process.wasHalted()) return false
    return !wall.wasSet() && !wasLockedSince(came.at)
  }

  function judge(job: string, at: string, isLater: boolean): void {
    const { last } = jobs.of(job)
    if (at < last || (isLater && at === last))
      complain(`a page is written at ${at}, and one before it at ${last}`, job)
  }

  function ofWalk(inHand: PageInHand, { updated_at: at }: WalkRow): string {
    const { job } = inHand.request
    const known = jobs.of(job)
    judge(job, at, known.refreshed !== '' && known.refreshed === known.last)
    known.last = at
    return isExact(inHand) ? isoNow() : at
  }

  /** Null where it changed nothing, or nobody can tell. */
  function ofRefresh(inHand: PageInHand): string | null {
    const { job } = inHand.request
    const known = jobs.of(job)
    const at = isExact(inHand) ? isoNow() : writtenAt(inHand, known)
    if (at === null) return null
    judge(job, at, true)
    known.last = at
    known.refreshed = at
    return isExact(inHand) ? at : null
  }

  /**
   * The earliest time that its rows may have from it: none that is still to come, but for what is known already. Such rows are of a
   * refresh that was killed before the clock was set back.
   */
  function writtenAt({ request: { job }, page, came }: PageInHand, { last }: JobTimes): string | null {
    const [organization, collection] = splitJob(job)
    const at = mirror.value(
      `SELECT min(_changed_at) FROM ${collection}_raw
       WHERE _organization_id = ? AND id IN (SELECT value FROM json_each(?)) AND _changed_at > ? AND _changed_at >= ? AND _changed_at <= ?`,
      organization,
      JSON.stringify(page.items.map(({ id }) => id)),
      last,
      new Date(came.wall).toISOString(),
      [isoNow(), last === '' ? '' : new Date(Date.parse(last) + 1).toISOString()].toSorted().at(-1),
    )
    return typeof at === 'string' ? at : null
  }

  return {
    tell: listenWith({
      claimed({ job: { organization, collection } }) {
        // What a refresh wrote that was not finished, nobody knows the time of any more.
        const known = jobs.of(jobName(organization.id, collection.name))
        if (wall.wasSet()) known.last = ''
      },
    }),
    ofWalk,
    ofRefresh,
  }
}

interface Version {
  version: number
  text: string
  from: string
  /** Until when it was live, and why no longer; null while it is. */
  ended: { at: string; reason: string } | null
  /** When the item came into the list, this time. */
  firstSeen: string
}

export interface SavedRows {
  added: number
  changed: number
}

/** A row that was live and is not any more. */
export interface Gone {
  id: number
  reason: string | null
}

/**
 * Promise 6: every version that was ever live is in the live table or in the history, once, and the times of one key's
 * versions join without overlap; where the item was removed, with a gap until it was listed again. So what was live at any
 * instant is what is known here to have been written before it.
 */
export function watchVersions({ wall, setting, mirror, complain }: OracleContext) {
  /** By job and key, the oldest first. */
  const saved = createStock((_job: string) => new Map<number, Version[]>())
  const isoNow = () => new Date(wall.now()).toISOString()

  function liveOf(job: string, id: number): Version | undefined {
    const last = saved.of(job).get(id)?.at(-1)
    return last?.ended ? undefined : last
  }

  function liveIds(job: string): number[] {
    return [...saved.of(job).keys()].filter((id) => liveOf(job, id)).toSorted((a, b) => a - b)
  }

  /** Takes note of a page that was committed just now, at this time, and looks whether its rows are there. Null: as they say. */
  function onSaved({ request, page, came }: PageInHand, at: string | null): SavedRows {
    const { job } = request
    const counts = { added: 0, changed: 0 }
    for (const item of page.items) {
      const outcome = note(job, item, at ?? changedAt(job, item, came.wall))
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

  /** As the mirror says, where it may not be now: since the clock was set back, or the mirror was locked. */
  function changedAt(job: string, { id }: ListItem, came: number): string {
    const [organization, collection] = splitJob(job)
    const sql = `SELECT _changed_at FROM ${collection}_raw WHERE _organization_id = ? AND id = ?`
    const at = mirror.value(sql, organization, id)
    const least = new Date(Math.min(came, wall.now())).toISOString()
    return typeof at === 'string' && at > least ? at : least
  }

  function note(job: string, item: ListItem, at: string): keyof SavedRows | null {
    const versions = saved.of(job).get(item.id) ?? []
    const live = liveOf(job, item.id)
    if (live?.version === item.version) return null
    // No version ends before it began, or begins before the last one ended, even if the clock was set back.
    const from = [at, live?.from ?? lastEnd(versions)].toSorted().at(-1) ?? at
    if (live) live.ended = { at: from, reason: 'changed' }
    const firstSeen = live?.firstSeen ?? from
    versions.push({ version: item.version, text: respelled(itemText(item)), from, ended: null, firstSeen })
    saved.of(job).set(item.id, versions)
    return live ? 'changed' : 'added'
  }

  function lastEnd(versions: readonly Version[]): string {
    return (setting.keepsHistory ? versions.at(-1)?.ended?.at : undefined) ?? ''
  }

  /** When an item was first seen, and since when it is as it is in the mirror; undefined where it is not there. */
  function timesOf(job: string, id: number): Pick<Version, 'firstSeen' | 'from'> | undefined {
    return liveOf(job, id)
  }

  /** Takes note of rows that are gone, since when and why they say themselves. */
  function takeGone(job: string): Gone[] {
    const [organization, collection] = splitJob(job)
    const live = liveIds(job)
    if (live.length === 0) return []
    const rows = mirror.rows(`SELECT id FROM ${collection}_raw WHERE _organization_id = ?`, organization)
    const there = new Set(rows.map(({ id }) => id))
    return live.filter((id) => !there.has(id)).map((id) => bury(job, organization, collection, id))
  }

  function bury(job: string, organization: string, collection: string, id: number): Gone {
    const version = liveOf(job, id)
    const [last] = mirror.rows(
      `SELECT _valid_to AS at, _reason AS reason FROM ${collection}_history
       WHERE _organization_id = ? AND id = ? AND _reason <> 'changed' ORDER BY _valid_to DESC LIMIT 1`,
      organization,
      id,
    )
    const at = last ? String(last.at) : isoNow()
    const reason = last ? String(last.reason) : null
    const keeps = setting.keepsHistory
    if (version && keeps && (!last || at < version.from || (at > isoNow() && at > version.from)))
      complain(`item ${id} was removed at ${at}, and has been as it was since ${version.from}`, job)
    if (version) version.ended = { at, reason: reason ?? 'removed' }
    return { id, reason: keeps ? reason : null }
  }

  function compareLive(job: string, id: number, row: Row | undefined): void {
    const live = liveOf(job, id)
    if (!row) {
      complain(`item ${id} was read and is not in the mirror`, job)
      return
    }
    if (respelled(row._json) !== live?.text)
      complain(`item ${id} is ${String(row._json)} in the mirror and should be ${live?.text}`, job)
    if (row._changed_at !== live?.from || row._first_seen_at !== live?.firstSeen)
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
    const keys = liveIds(job)
    if (count !== undefined && count !== keys.length)
      complain(`${keys.length} items are live, and sync_jobs counts ${Number(count)}`, job)
    if (saved.of(job).size === 0) return
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
    const expected = liveIds(job).map((id) => {
      const live = liveOf(job, id)
      return { id, version: live?.version, _first_seen_at: live?.firstSeen, _changed_at: live?.from }
    })
    if (JSON.stringify(typed) !== JSON.stringify(expected))
      complain('the typed rows are not the live versions', job)
  }

  function compareHistory(job: string, organization: string, collection: string): void {
    const rows = mirror.rows(
      `SELECT id, _json, _valid_from, _valid_to, _reason FROM ${collection}_history
       WHERE _organization_id = ? ORDER BY id, _valid_from, _valid_to, rowid`,
      organization,
    )
    const ended = [...saved.of(job)]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([id, versions]) => versions.flatMap((version) => endOf(id, version)))
    const expected = setting.keepsHistory ? ended : []
    const found = rows.map((row) => ({ ...row, _json: respelled(row._json) }))
    if (JSON.stringify(found) === JSON.stringify(expected)) return
    complain(`the history is ${JSON.stringify(rows)}, and should be ${JSON.stringify(expected)}`, job)
  }

  /** How a list and its mirror differ; null where they are equal. */
  function difference(job: string, { items }: SimulatedList, filters: ListFilters): string | null {
    const listed = items.filter((item) => isListed(item, filters))
    const absent = listed.find(({ id, version }) => liveOf(job, id)?.version !== version)
    if (absent) return `item ${absent.id} is not in the mirror as it stands in the list`
    const extra = liveIds(job).find((id) => !listed.some((item) => item.id === id))
    return extra === undefined ? null : `item ${extra} is in the mirror and not in the list`
  }

  return { onSaved, timesOf, takeGone, liveIds, compareAll, difference }
}

function endOf(id: number, { text, from, ended }: Version): Row[] {
  if (!ended) return []
  return [{ id, _json: text, _valid_from: from, _valid_to: ended.at, _reason: ended.reason }]
}

/** White space, escapes and the spelling of a number are not promised: these lists have no number that a double does not hold. */
function respelled(json: unknown): string {
  return JSON.stringify(JSON.parse(String(json)))
}
