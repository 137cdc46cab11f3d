import { createHash } from 'node:crypto'
import type { BudgetStore } from '../../sync/types.ts'
import type { SqlValue } from '../columns/column.ts'
import { all, type Dialect, one, type Rule, run, type Runner, timeOf, type Values } from './sql.ts'

// `sync_organizations`: what is configured. `sync_refused_tokens`: which tokens are held, by their fingerprints.

/** What a store knows of organizations, their tokens and budgets, beside the rows of their lists. Each method is one short transaction. */
export interface Tokens {
  /** A name for a token that reveals nothing: its hash with a salt of this mirror. */
  fingerprint(token: string): string
  /** Notes which token an organization uses from now on. It is held if that token is. */
  useToken(organizationId: string, fingerprint: string): Promise<void>
  /** Why a token must not be used; null: it may be. */
  heldReason(fingerprint: string): Promise<string | null>
  /** Holds a token, with these organizations and all others that use it. */
  hold(organizationIds: readonly string[], fingerprint: string, reason: string, at: string): Promise<void>
  /** Lifts the holds of the tokens that these organizations used last, and ends the pauses of their budgets. Returns the names of all that were held. */
  resume(organizationIds: readonly string[]): Promise<string[]>
  budgets: BudgetStore
}

export interface TokenOptions {
  runner: Pick<Runner, 'dialect' | 'reading' | 'writing'>
  /** Of the mirror, as `saltOf` returns it. */
  salt: string
  budgets: BudgetStore
}

export function createTokens({ runner, salt, budgets }: TokenOptions): Tokens {
  const { dialect, reading, writing } = runner
  return {
    fingerprint: (token) => createHash('sha256').update(`${salt}\0${token}`).digest('hex').slice(0, 32),
    async useToken(id, fingerprint) {
      const text = 'SELECT last_fingerprint AS last FROM sync_organizations WHERE id = :id'
      const row = await reading(one<{ last: string | null }>(text, { id }))
      const use = 'UPDATE sync_organizations SET last_fingerprint = :fingerprint WHERE id = :id'
      // Mostly nothing has changed, and then no lock is needed.
      if (row?.last !== fingerprint) await writing(() => run(use, { id, fingerprint }))
    },
    async heldReason(fingerprint) {
      const text = 'SELECT reason FROM sync_refused_tokens WHERE fingerprint = :fingerprint'
      const row = await reading(one<{ reason: string }>(text, { fingerprint }))
      return row?.reason ?? null
    },
    hold: (...told) => writing(() => hold(dialect, ...told)),
    resume: (organizationIds) => writing(() => resume(dialect, organizationIds)),
    budgets,
  }
}

/** Notes what is configured now; other organizations and jobs stay, marked as not configured. One process at a time may do so. */
export function* register(
  dialect: Dialect,
  organizations: readonly { id: string; name: string; collections: readonly { name: string }[] }[],
): Rule<void> {
  const named = organizations.map(({ id, name }) => [id, name])
  const jobs = organizations.flatMap(({ id, collections }) => collections.map(({ name }) => [id, name]))
  yield* configure(dialect, 'sync_organizations', ['id'], ['name'], named)
  yield* configure(dialect, 'sync_jobs', ['organization_id', 'collection'], [], jobs)
}

/**
 * Marks these rows as configured, and all others as not. Rows that are marked already are not written: on a server, workers that write pages
 * have the rows of their jobs locked, and would wait for this process while it waits for them.
 */
function* configure(
  dialect: Dialect,
  table: string,
  key: readonly string[],
  others: readonly string[],
  wanted: readonly string[][],
): Rule<void> {
  const names = [...key, ...others]
  const known = yield* all<Values>(`SELECT ${names.join(', ')} FROM ${table} WHERE configured = 1`)
  const before = known.map((row) => names.map((name) => row[name] ?? null))
  const keyOf = (row: readonly SqlValue[]) => JSON.stringify(row.slice(0, key.length))
  const [keys, rows] = [new Set(wanted.map(keyOf)), new Set(before.map((row) => JSON.stringify(row)))]
  const changed = [
    ...before.filter((row) => !keys.has(keyOf(row))).map((row) => [...row, 0]),
    ...wanted.filter((row) => !rows.has(JSON.stringify(row))).map((row) => [...row, 1]),
  ]
  const line = dialect.lines({
    ...Object.fromEntries(names.map((name) => [name, 'text'])),
    configured: 'bigint',
  })
  const columns = [...names, 'configured']
  yield* line.run(
    `
      INSERT INTO ${table} (${columns.join(', ')})
      ${line.rows(columns.map(line.value))}
      ON CONFLICT (${key.join(', ')}) DO UPDATE
      SET ${columns.map((name) => `${name} = excluded.${name}`).join(', ')}
    `,
    changed,
  )
}

function* hold(
  dialect: Dialect,
  ...[organizationIds, fingerprint, reason, at]: Parameters<Tokens['hold']>
): Rule<void> {
  yield* run(
    `
      INSERT INTO sync_refused_tokens (fingerprint, reason, since) VALUES (:fingerprint, :reason, :at)
      ON CONFLICT (fingerprint) DO UPDATE SET reason = excluded.reason, since = excluded.since
    `,
    { fingerprint, reason, at },
  )
  yield* run(
    `
      UPDATE sync_organizations
      SET last_fingerprint = :fingerprint
      WHERE id IN (SELECT chosen.value FROM ${dialect.each(':ids::text', 'chosen')})
    `,
    { fingerprint, ids: JSON.stringify(organizationIds) },
  )
}

function* resume(dialect: Dialect, organizationIds: readonly string[]): Rule<string[]> {
  const ids = JSON.stringify(organizationIds)
  const chosen = `SELECT chosen.value FROM ${dialect.each(':ids::text', 'chosen')}`
  const used = `SELECT last_fingerprint FROM sync_organizations WHERE id IN (${chosen})`
  const lifted = yield* all<{ name: string }>(
    `
      SELECT name FROM sync_organizations
      JOIN sync_refused_tokens ON fingerprint = last_fingerprint
      WHERE fingerprint IN (${used})
    `,
    { ids },
  )
  // Requests of the last minute still count.
  yield* run(
    `
      UPDATE sync_gates
      SET closed_until = :never, version = version + 1
      WHERE scope = 'all' OR scope IN (${chosen}) OR scope IN (${used})
    `,
    { ids, never: timeOf(0) },
  )
  // Of all organizations: with those that nobody uses now, as far as is known. A process may have one that the configuration no longer has.
  yield* run(
    `
      DELETE FROM sync_refused_tokens
      WHERE fingerprint IN (${used})
        OR fingerprint NOT IN (SELECT last_fingerprint FROM sync_organizations WHERE last_fingerprint IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM sync_organizations WHERE configured = 1 AND id NOT IN (${chosen}))
    `,
    { ids },
  )
  return lifted.map(({ name }) => name).toSorted()
}
