import type { Logger } from 'pino'
import type { KnownError } from '../../errors.ts'
import { counted, grouped, inWords } from '../../text.ts'

/** What a command has done, of all its lists together. */
export interface Totals {
  lists: number
  failed: number
  /** Left to another process that works on them. */
  busy: number
  /** By a signal. */
  stopped: number
  requests: number
  /** Null: the command writes nothing. */
  rows: { added: number; changed: number; removed: number } | null
}

export function newTotals(): Totals {
  return { lists: 0, failed: 0, busy: 0, stopped: 0, requests: 0, rows: null }
}

interface Written {
  rowsAdded: number
  rowsChanged: number
  rowsRemoved?: number
}

/** Adds a list that ended. */
export function addList(
  totals: Totals,
  error: KnownError | null,
  requests: number,
  run: Written | null,
): void {
  totals.lists++
  if (error?.code === 'INTERRUPTED') totals.stopped++
  else if (error?.code === 'BUSY') totals.busy++
  else if (error) totals.failed++
  totals.requests += requests
  if (!run) return
  totals.rows ??= { added: 0, changed: 0, removed: 0 }
  totals.rows.added += run.rowsAdded
  totals.rows.changed += run.rowsChanged
  totals.rows.removed += run.rowsRemoved ?? 0
}

/** `20 lists in 13 minutes: 19 ended well, 1 failed; 12 rows new, 3 changed, 0 removed; 812 requests` */
export function totalsText({ lists, failed, busy, stopped, requests, rows }: Totals, ms: number): string {
  const ends = [
    [failed, 'failed'],
    [busy, 'left to another process'],
    [stopped, 'stopped'],
  ] as const
  const others = ends.filter(([count]) => count > 0).map(([count, how]) => `${grouped(count)} ${how}`)
  const well =
    others.length === 0 ? 'all ended well' : `${grouped(lists - failed - busy - stopped)} ended well`
  const ended = [well, ...others].join(', ')
  const written = rows
    ? [
        `${counted(rows.added, 'row')} new, ${grouped(rows.changed)} changed, ${grouped(rows.removed)} removed`,
      ]
    : []
  return [
    `${counted(lists, 'list')} in ${inWords(ms)}: ${ended}`,
    ...written,
    counted(requests, 'request'),
  ].join('; ')
}

/** The last line of a command; of a single list, the line of its run has said it. `ms`: how long the command took. */
export function logTotals(log: Logger, totals: Totals, ms: number): void {
  const { lists, failed, busy, stopped, requests, rows } = totals
  if (lists < 2) return
  const written = rows && { rows_added: rows.added, rows_changed: rows.changed, rows_removed: rows.removed }
  log.info(
    { event: 'command_finished', duration_ms: ms, lists, failed, busy, stopped, ...written, requests },
    totalsText(totals, ms),
  )
}
