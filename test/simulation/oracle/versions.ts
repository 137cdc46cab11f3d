import { knownOfJobs, listenWith, splitJob } from '../happening.ts'
import { itemText, listedItems, type ListFilters, type ListItem, type SimulatedList } from '../list.ts'
import { iso, type OracleContext, type Row } from './context.ts'
import type { Finding, PageInHand, WalkRow } from './ledger.ts'

interface Version {
  id: number
  version: number
  text: string
  from: string
  /** When the item came into the list, this time. */
  firstSeen: string
}

/** What a page has changed. `at`: its time; null for a refresh's that has changed nothing. */
export interface WrittenPage {
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

const newJob = () => ({
  live: new Map<number, Version>(),
  /** Those of before, each with the end of its time and the reason for it, in the order of their ends. */
  ended: [] as (Version & { to: string; reason: string })[],
  /** The time of the last page that whoever has the job must know of. */
  last: '',
})
type JobKnowledge = ReturnType<typeof newJob>

export type Versions = ReturnType<typeof knowVersions>

/**
 * Promise 6: every version that was ever live is in the live table or in the history, once, and the times of one key's
 * versions join without overlap; where the item was removed, with a gap until it was listed again. So what was live at any
 * instant is what is known here to have been written before it.
 */
export function knowVersions({ now, wall, wasSet, setting, mirror, complain }: OracleContext) {
  const { keepsHistory } = setting
  const jobs = knownOfJobs(newJob)

  const liveOf = (job: string, id: number): Version | undefined => jobs.of(job).live.get(id)
  const liveIds = (job: string): number[] => byId([...jobs.of(job).live.values()]).map(({ id }) => id)

  /** Rows of a job in a table of its collection. */
  function rowsOf(job: string, select: string, table: string, and = '', ...values: unknown[]): Row[] {
    const [organization, collection] = splitJob(job)
    const sql = `SELECT ${select} FROM ${collection}${table} WHERE _organization_id = ? ${and}`
    return mirror.rows(sql, organization, ...values)
  }

  const rawRows = (job: string) => new Map(rowsOf(job, '*', '_raw').map((row) => [Number(row.id), row]))

  /**
   * Takes note of a page that was committed just now, and looks whether its rows are there, since the time of the page. `walk`: null for a
   * refresh, whose time its rows alone have.
   */
  function write(inHand: PageInHand, walk: WalkRow | null): WrittenPage {
    const { items } = inHand.page
    const { job } = inHand.request
    const known = jobs.of(job)
    const rows = rawRows(job)
    const changed = items.filter(({ id, version }) => known.live.get(id)?.version !== version)
    const times = changed.flatMap(({ id }) => rows.get(id)?._changed_at ?? []).map(String)
    const at = walk?.updated_at ?? times.toSorted()[0] ?? null
    checkTime(inHand, at, walk === null, changed)
    const added = changed.filter(({ id }) => !known.live.has(id)).length
    for (const item of changed) note(known, item, at ?? '')
    for (const { id } of items) compareLive(job, id, rows.get(id))
    return { at, items: items.length, added, changed: changed.length - added }
  }

  /**
   * A page is written with a time between its arrival and now, which mostly are the same. Where the clock was set back, it is none that was
   * never shown, and none before that of a page that is known, whoever wrote that one: else what was known at an instant would change
   * afterwards. A refresh's is later than that.
   */
  function checkTime(
    { request: { job }, came }: PageInHand,
    at: string | null,
    isLater: boolean,
    items: readonly ListItem[],
  ): void {
    const known = jobs.of(job)
    const passed = now() - came.at
    const lastKnown = known.last === '' ? '' : iso(Date.parse(known.last) + (isLater ? 1 : 0))
    const least = later(iso(wall() - passed), lastKnown)
    const most = iso(wasSet() ? now() : came.wall + passed)
    if (at !== null && (at < least || at > most))
      complain(`a page is written at ${at}, which was to be between ${least} and ${most}`, job)
    // A version does not begin before the last one ended: such a row does not say when its page was written.
    if (isLater && items.some(({ id }) => floorOf(known, id) === at)) return
    known.last = at ?? known.last
  }

  /** Until when the last version is known to have been live. */
  function floorOf({ live, ended }: JobKnowledge, id: number): string {
    const before = keepsHistory ? ended.findLast((one) => one.id === id)?.to : ''
    return live.get(id)?.from ?? before ?? ''
  }

  function note(known: JobKnowledge, item: ListItem, at: string): void {
    const { id, version } = item
    const before = known.live.get(id)
    const from = later(at, floorOf(known, id))
    if (before) known.ended.push({ ...before, to: from, reason: 'changed' })
    const text = respelled(itemText(item))
    known.live.set(id, { id, version, text, from, firstSeen: before?.firstSeen ?? from })
  }

  /** Takes note of rows that are gone, since when and why they say themselves. */
  function takeGone(job: string): Gone[] {
    const { live, ended } = jobs.of(job)
    if (live.size === 0) return []
    const there = rawRows(job)
    const last = "AND id = ? AND _reason <> 'changed' ORDER BY _valid_to DESC LIMIT 1"
    return byId([...live.values()].filter(({ id }) => !there.has(id))).map((version) => {
      const { id, from } = version
      const [end] = rowsOf(job, '_valid_to AS at, _reason AS reason', '_history', last, id)
      const to = end ? String(end.at) : iso(wall())
      const reason = end ? String(end.reason) : null
      if (keepsHistory && (!end || to < from || (to > iso(wall()) && to > from)))
        complain(`item ${id} was removed at ${to}, and has been as it was since ${from}`, job)
      live.delete(id)
      ended.push({ ...version, to, reason: reason ?? 'removed' })
      return { id, reason: keepsHistory ? reason : null }
    })
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
    const { live, ended } = jobs.of(job)
    const status = mirror.statusOf(job)
    if (status && status.rows !== live.size)
      complain(`${live.size} items are live, and sync_status counts ${status.rows}`, job)
    if (live.size + ended.length === 0) return
    const rows = rawRows(job)
    if (rows.size !== live.size) complain(`${rows.size} rows stand for ${live.size} items`, job)
    for (const id of live.keys()) compareLive(job, id, rows.get(id))

    const typed = rowsOf(job, 'id, version, _first_seen_at, _changed_at', '', 'ORDER BY id')
    const versions = byId([...live.values()]).map(({ id, version, firstSeen, from }) => {
      return { id, version, _first_seen_at: firstSeen, _changed_at: from }
    })
    if (JSON.stringify(typed) !== JSON.stringify(versions))
      complain('the typed rows are not the live versions', job)

    const order = 'ORDER BY id, _valid_from, _valid_to, rowid'
    const history = rowsOf(job, 'id, _json, _valid_from, _valid_to, _reason', '_history', order)
    const expected = byId(keepsHistory ? ended : []).map(({ id, text, from, to, reason }) => {
      return { id, _json: text, _valid_from: from, _valid_to: to, _reason: reason }
    })
    const found = history.map((row) => ({ ...row, _json: respelled(row._json) }))
    if (JSON.stringify(found) !== JSON.stringify(expected))
      complain(`the history is ${JSON.stringify(history)}, and should be ${JSON.stringify(expected)}`, job)
  }

  /** How a list and its mirror differ; null where they are equal. */
  function difference(job: string, list: SimulatedList, filters: ListFilters): string | null {
    const listed = listedItems(list, filters)
    const absent = listed.find(({ id, version }) => liveOf(job, id)?.version !== version)
    if (absent) return `item ${absent.id} is not in the mirror as it stands in the list`
    const extra = liveIds(job).find((id) => !listed.some((item) => item.id === id))
    return extra === undefined ? null : `item ${extra} is in the mirror and not in the list`
  }

  const watch = (tell: (found: Finding) => void) =>
    listenWith<Finding>({
      saved({ inHand, walk }) {
        tell({ kind: 'written', request: inHand.request, walk, written: write(inHand, walk) })
      },
    })

  return { watch, takeGone, liveIds, liveOf, compareAll, difference }
}

function byId<Of extends { id: number }>(rows: readonly Of[]): Of[] {
  return rows.toSorted((one, other) => one.id - other.id)
}

function later(one: string, other: string): string {
  return one > other ? one : other
}

/** White space, escapes and the spelling of a number are not promised: these lists have no number that a double does not hold. */
function respelled(json: unknown): string {
  return JSON.stringify(JSON.parse(String(json)))
}
