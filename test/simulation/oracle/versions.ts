import { knownOfJobs, listenWith } from '../happening.ts'
import { itemText, type ListFilters, type ListItem, listedItems, type SimulatedList } from '../list.ts'
import { iso, type OracleContext, type Row, splitJob } from './context.ts'
import type { Finding, PageInHand, WalkRow } from './ledger.ts'

interface Version {
  version: number
  text: string
  from: string
  /** Until when it was live, and why no longer; null while it is. */
  ended: { at: string; reason: string } | null
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

export type Versions = ReturnType<typeof knowVersions>

/**
 * Promise 6: every version that was ever live is in the live table or in the history, once, and the times of one key's
 * versions join without overlap; where the item was removed, with a gap until it was listed again. So what was live at any
 * instant is what is known here to have been written before it.
 */
export function knowVersions({ now, wall, wasSet, setting, mirror, complain }: OracleContext) {
  const jobs = knownOfJobs(() => ({
    /** By key, the oldest first. */
    items: new Map<number, Version[]>(),
    /** The time of the last page that whoever has the job must know of. */
    last: '',
  }))

  function liveOf(job: string, id: number): Version | undefined {
    const last = jobs.of(job).items.get(id)?.at(-1)
    return last?.ended ? undefined : last
  }

  function liveIds(job: string): number[] {
    return [...jobs.of(job).items.keys()].filter((id) => liveOf(job, id)).toSorted((a, b) => a - b)
  }

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
    const { page, request } = inHand
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
    { request: { job }, came }: PageInHand,
    at: string | null,
    isLater: boolean,
    items: readonly ListItem[],
  ) {
    const known = jobs.of(job)
    const passed = now() - came.at
    const lastKnown = known.last === '' ? '' : iso(Date.parse(known.last) + (isLater ? 1 : 0))
    const least = [iso(wall() - passed), lastKnown].toSorted()[1] ?? ''
    const most = iso(wasSet() ? now() : came.wall + passed)
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
    const live = liveOf(job, item.id)
    const from = [at, floorOf(job, item.id)].toSorted()[1] ?? at
    if (live) live.ended = { at: from, reason: 'changed' }
    const { version } = item
    const firstSeen = live?.firstSeen ?? from
    const text = respelled(itemText(item))
    items.set(item.id, [...(items.get(item.id) ?? []), { version, text, from, ended: null, firstSeen }])
  }

  /** Takes note of rows that are gone, since when and why they say themselves. */
  function takeGone(job: string): Gone[] {
    const live = liveIds(job)
    const there = rawRows(job)
    return live.filter((id) => !there.has(id)).map((id) => bury(job, id))
  }

  function bury(job: string, id: number): Gone {
    const version = liveOf(job, id)
    const last = "AND id = ? AND _reason <> 'changed' ORDER BY _valid_to DESC LIMIT 1"
    const [end] = rowsOf(job, '_valid_to AS at, _reason AS reason', '_history', last, id)
    const at = end ? String(end.at) : iso(wall())
    const reason = end ? String(end.reason) : null
    const keeps = setting.keepsHistory
    if (version && keeps && (!end || at < version.from || (at > iso(wall()) && at > version.from)))
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
    const ids = liveIds(job)
    const status = mirror.statusOf(job)
    if (status && status.rows !== ids.length)
      complain(`${ids.length} items are live, and sync_status counts ${status.rows}`, job)
    const { items } = jobs.of(job)
    if (items.size === 0) return
    const rows = rawRows(job)
    if (rows.size !== ids.length) complain(`${rows.size} rows stand for ${ids.length} items`, job)
    for (const id of ids) compareLive(job, id, rows.get(id))

    const typed = rowsOf(job, 'id, version, _first_seen_at, _changed_at', '', 'ORDER BY id')
    const live = ids.map((id) => {
      const { version, firstSeen, from } = liveOf(job, id) ?? {}
      return { id, version, _first_seen_at: firstSeen, _changed_at: from }
    })
    if (JSON.stringify(typed) !== JSON.stringify(live))
      complain('the typed rows are not the live versions', job)

    const order = 'ORDER BY id, _valid_from, _valid_to, rowid'
    const history = rowsOf(job, 'id, _json, _valid_from, _valid_to, _reason', '_history', order)
    const ended = [...items]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([id, versions]) => versions.map((version) => ({ id, ...version })))
      .flatMap(({ id, text, from, ended: end }) =>
        end ? [{ id, _json: text, _valid_from: from, _valid_to: end.at, _reason: end.reason }] : [],
      )
    const expected = setting.keepsHistory ? ended : []
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

/** White space, escapes and the spelling of a number are not promised: these lists have no number that a double does not hold. */
function respelled(json: unknown): string {
  return JSON.stringify(JSON.parse(String(json)))
}
