import { jobKey } from '../../text.ts'
import { tableName } from '../columns/catalog.ts'
import { saveSetting, setting } from './settings.ts'
import { all, one, quoted, type Rule, run } from './sql.ts'

// Whether the published file is to be made again: both it and the mirror are asked for what it shows, without a look at the rows.

/** A row of `sync_status`. */
type StatusLine = Record<string, unknown> & { organization_id: string; collection: string }

/** What a mirror shows, or its published file. */
export interface Shown {
  lists: StatusLine[]
  /** What stands for all else: equal where it is. */
  rest: string
}

/** Reads it, all of one moment. */
export function* shown(): Rule<Shown> {
  const lists = yield* all<StatusLine>('SELECT * FROM sync_status ORDER BY organization_id, collection')
  const columns = yield* all<{ collection: string }>(
    'SELECT collection, "column", type FROM sync_columns ORDER BY collection, "column"',
  )
  const rest: unknown[] = [
    columns,
    yield* all('SELECT * FROM organizations ORDER BY id'),
    yield* one('SELECT count(*) AS rejects FROM sync_rejects'),
  ]
  // Rows and history do not change without an event.
  for (const name of new Set(columns.map(({ collection }) => collection))) {
    const [json, history] = (['json', 'history'] as const).map((kind) => quoted(tableName(name, kind)))
    const last = `SELECT max(_seq) AS began, (SELECT max(_ended_seq) FROM ${history}) AS ended FROM ${json}`
    rest.push(yield* one(last))
  }
  return { lists, rest: JSON.stringify(rest) }
}

/** Columns of `sync_status` that change with each run and are no news: such a new one belongs here. */
const TIMES = ['as_of', 'last_complete_at', 'fresh_as_of', 'last_run_at']

/** What of the mirror the file lacks: nothing, only times, or more. A run that has begun is no news. */
export function newsOf(mirror: Shown, file: Shown): 'none' | 'times' | 'more' {
  const before = new Map(file.lists.map((line) => [jobKey(line.organization_id, line.collection), line]))
  const lists = mirror.lists.map((line) => {
    const { last_run_status, error_code, last_run_at } =
      before.get(jobKey(line.organization_id, line.collection)) ?? line
    return line.last_run_status === 'running' ? { ...line, last_run_status, error_code, last_run_at } : line
  })
  if (mirror.rest !== file.rest || textOf(lists, false) !== textOf(file.lists, false)) return 'more'
  return textOf(lists, true) === textOf(file.lists, true) ? 'none' : 'times'
}

function textOf(lines: readonly StatusLine[], areTimes: boolean): string {
  return JSON.stringify(
    lines.map((line) => Object.entries(line).filter(([name]) => TIMES.includes(name) === areTimes)),
  )
}

const FAILED = 'publish_failed'

/** Why nothing was published when that was tried last; null: something was, or there was no news. */
export function publishFailure(): Rule<string | null> {
  return setting(FAILED)
}

export function* notePublishFailure(reason: string | null): Rule<void> {
  if (reason === null) yield* run('DELETE FROM sync_settings WHERE name = :name', { name: FAILED })
  else yield* saveSetting(FAILED, reason)
}

/** A making of the file, or an attempt. Milliseconds; `at`: epoch. */
export interface Making {
  at: number
  tookMs: number
}

/** Where only times have moved, a service makes the file so seldom. */
const TIMES_EVERY_MS = 3_600_000

/** A service makes the file so seldom that this takes at most a tenth of the time. */
const PARTS_OF_TIME = 10

/**
 * When a service makes the file again. `every`: at most once in so many milliseconds. `made`: the file that is there; `failed`: the last
 * attempt, if it failed. After the clock was set back, times in the future delay nothing.
 */
export function nextPublication(
  news: 'times' | 'more',
  { made, failed, every, now }: { made: Making | null; failed: Making | null; every: number; now: number },
): number {
  const after = (making: Making | null, least: number) =>
    making === null || making.at > now ? now : making.at + Math.max(least, making.tookMs * PARTS_OF_TIME)
  return Math.max(
    after(made, news === 'times' ? Math.max(every, TIMES_EVERY_MS) : every),
    after(failed, every),
  )
}
