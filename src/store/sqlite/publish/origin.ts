import { createHash } from 'node:crypto'
import { UsageError } from '../../../errors.ts'
import { msOf, one, type Rule, type StoredTime } from '../../core/sql.ts'
import { runRule } from '../driver.ts'
import type { Connection } from '../sql.ts'
import { numbersFile, readNumbers } from './numbers.ts'
import type { Place } from './place.ts'

// Two mirrors with one `publish` would replace each other's data: the numbers beside a copy say of which mirror it was made.

/** The mirror of a copy. */
export interface Origin {
  /** The same for a mirror that was moved, or restored from a backup; it reveals nothing. */
  id: string
  /** Where the mirror stands, as a hash: the same for one that was made anew there. */
  place: string
  /** When the mirror was filled first, epoch milliseconds; null while it is empty. */
  since: number | null
}

/** @param where The mirror's file, or its schema on a server. */
export function originOf(where: string, { salt, since }: { salt: string; since: number | null }): Origin {
  return { id: shortHash(`mirror\0${salt}`), place: shortHash(where), since }
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** The mirror's own; null for one that has just been made. */
export function* originAt(where: string): Rule<Origin | null> {
  const row = yield* one<{ salt: string; first: StoredTime | null }>(`
    SELECT value AS salt, (SELECT min(first_seen_at) FROM sync_columns) AS first
    FROM sync_settings
    WHERE name = 'salt'
  `)
  return row && originOf(where, { salt: row.salt, since: row.first === null ? null : msOf(row.first) })
}

export function originIn(connection: Connection): Origin | null {
  return runRule(connection, originAt(connection.name))
}

/** Throws UsageError if the file is another mirror's. One that says nothing of its mirror is replaced. */
export function assertOwnCopy(named: string, { file, before }: Place, origin: Origin): void {
  const numbers = before && readNumbers(numbersFile(file))
  if (!numbers || isOwn(numbers, origin)) return
  throw new UsageError(
    `${named} is the copy of another mirror, made at ${numbers.created_at}, so it is left as it is, and nothing is published. Give ` +
      `each configuration a "publish" of its own. If that mirror is used no more, delete ${named}`,
  )
}

function isOwn(
  { mirror, created_at: at }: NonNullable<ReturnType<typeof readNumbers>>,
  own: Origin,
): boolean {
  if (mirror === null || mirror.id === own.id) return true
  // Made before this mirror, by one that stood here and was deleted.
  return mirror.place === own.place && (own.since === null || Date.parse(at) < own.since)
}
