import { isListed, itemText, type ListFilters, type ListItem, type SimulatedList } from '../list.ts'
import { knownOfJobs, type OracleContext, type Row, splitJob } from './context.ts'
import type { PageInHand, WalkRow } from './ledger.ts'

interface Version {
  version: number
  text: string
  from: string
  /** Until when it was live, and why no longer; null while it is. */
  ended: { at: string; reason: string } | null
  /** When the item came into the list, this time. */
  firstSeen: string
}

interface JobKnowledge {
  /** By key, the oldest first. */
  items: Map<number, Version[]>
  /** The time of the last page that whoever has the job must know of. */
  last: string
}

/** `at`: the time of the page; null for a refresh's that has changed nothing. */
export interface SavedPage {
  at: string | null
  items: number
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
export function watchVersions({ now, wall, setting, mirror, complain }: OracleContext) {
  const jobs = knownOfJobs((): JobKnowledge => ({ items: new Map(), last: '' }))

  function liveOf(job: string, id: number): Version | undefined {
    const last = jobs.of(job).items.get(id)?.at(-1)
    return last?.ended ? undefined : last
  }

  function liveIds(job: string): number[] {
    return [...jobs.of(job).items.keys()].filter((id) => liveOf(job, id)).toSorted((a, b) => a - b)
  }

  function rawRows(job: string): Map<number, Row> {
    const [organization, collection] = splitJob(job)
    const rows = mirror.rows(`SELECT * FROM ${collection}_raw WHERE _organization_id = ?`, organization)
    return new Map(rows.map((row) => [Number(row.id), row]))
  }

  /**
   * Takes note of a page that was committed just now, and looks whether its rows are there, since the time of the page. `walk`: null for a
   * refresh, whose time its rows alone have.
   */
  function onSaved(inHand: PageInHand, walk: WalkRow | null): SavedPage {
    const { request, page } = inHand
    const { job } = request
    const rows = rawRows(job)
    const changed = page.items.filter(({ id, version }) => liveOf(job, id)?.version !== version)
    const times = changed.flatMap(({ id }) => rows.get(id)?._changed_at ?? []).map(String)
    const at = walk?.updated_at ?? times.toSorted()[0] ?? null
    checkTime(inHand, at, walk === null, changed)
    const added = changed.filter(({ id }) => !liveOf(job, id)).length
    for (const item of changed) note(job, item, at ?? '')
    for (const { id } of page.items) compareLive(job, id, rows.get(id))
    return { at, items: page.items.length, added, changed: changed.length - added }
  }

  /**
   * A page is written with a time between its arrival and now, which mostly are the same. Where the clock was set back, it is none that was
   * never shown, and none before that of a page that is known, whoever wrote that one: else what was known at an instant would change
   * afterwards. A refresh's is later than that.
   */
  function checkTime(
    { request, came }: PageInHand,
    at: string | null,
    isLater: boolean,
    items: readonly ListItem[],
  ) {
    const { job } = request
    const known = jobs.of(job)
    const passed = now() - came.at
    const least = [iso(wall.now() - passed), after(known.last, isLater ? 1 : 0)].toSorted()[1] ?? ''
    const most = iso(wall.wasSet() ? now() : came.wall + passed)
    if (at !== null && (at < least || at > most))
      complain(`a page is written at ${at}, which was to be between ${least} and ${most}`, job)
    // A version does not begin before the last one ended: such a row does not say when its page was written.
    if (isLater && items.some(({ id }) => floorOf(job, id) === at)) return
    known.last = at ?? known.last
  }

  /** Until when the last version is known to have been live. */
  function floorOf(job: string, id: number): string {
    const last = jobs.of(job).items.get(id)?.at(-1)
    if (!last?.ended) return last?.from ?? ''
    return setting.keepsHistory ? last.ended.at : ''
  }

  function note(job: string, item: ListItem, at: string): void {
    const { items } = jobs.of(job)
    const versions = items.get(item.id) ?? []
    const live = liveOf(job, item.id)
    const from = [at, floorOf(job, item.id)].toSorted()[1] ?? at
    if (live) live.ended = { at: from, reason: 'changed' }
    const { version } = item
    const firstSeen = live?.firstSeen ?? from
    versions.push({ version, text: respelled(itemText(item)), from, ended: null, firstSeen })
    items.set(item.id, versions)
  }

  /** Takes note of rows that are gone, since when and why they say themselves. */
  function takeGone(job: string): Gone[] {
    const live = liveIds(job)
    const there = rawRows(job)
    return live.filter((id) => !there.has(id)).map((id) => bury(job, id))
  }

  function bury(job: string, id: number): Gone {
    const [organization, collection] = splitJob(job)
    const version = liveOf(job, id)
    const [last] = mirror.rows(
      `SELECT _valid_to AS at, _reason AS reason FROM ${collection}_history
       WHERE _organization_id = ? AND id = ? AND _reason <> 'changed' ORDER BY _valid_to DESC LIMIT 1`,
      organization,
      id,
    )
    const at = last ? String(last.at) : iso(wall.now())
    const reason = last ? String(last.reason) : null
    const keeps = setting.keepsHistory
    if (version && keeps && (!last || at < version.from || (at > iso(wall.now()) && at > version.from)))
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

  /** The whole mirror of a job against all that was written. */
  function compareAll(job: string): void {
    const [organization, collection] = splitJob(job)
    const ids = liveIds(job)
    const [status] = mirror.ofJob(job, 'SELECT rows FROM sync_status')
    if (status && status.rows !== ids.length)
      complain(`${ids.length} items are live, and sync_status counts ${Number(status.rows)}`, job)
    if (jobs.of(job).items.size === 0) return
    const rows = rawRows(job)
    if (rows.size !== ids.length) complain(`${rows.size} rows stand for ${ids.length} items`, job)
    for (const id of ids) compareLive(job, id, rows.get(id))
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
    const ended = [...jobs.of(job).items]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([id, versions]) => versions.flatMap((version) => endOf(id, version)))
    const expected = setting.keepsHistory ? ended : []
    const found = rows.map((row) => ({ ...row, _json: respelled(row._json) }))
    if (JSON.stringify(found) !== JSON.stringify(expected))
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

  return {
    onSaved,
    takeGone,
    liveIds,
    liveOf,
    compareAll,
    difference,
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** So many milliseconds after a time, if there is one. */
function after(time: string, ms: number): string {
  return time === '' ? '' : iso(Date.parse(time) + ms)
}

function endOf(id: number, { text, from, ended }: Version): Row[] {
  if (!ended) return []
  return [{ id, _json: text, _valid_from: from, _valid_to: ended.at, _reason: ended.reason }]
}

/** White space, escapes and the spelling of a number are not promised: these lists have no number that a double does not hold. */
function respelled(json: unknown): string {
  return JSON.stringify(JSON.parse(String(json)))
}
