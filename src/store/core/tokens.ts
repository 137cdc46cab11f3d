import { createHash } from 'node:crypto'
import type { BudgetStore } from '../../sync/types.ts'
import { setting } from './settings.ts'
import { all, type Columns, type Dialect, one, type Rule, run, timeOf, type Values } from './sql.ts'

// `organizations`: what is configured, and whose token is held.

export interface RegisteredOrganization {
  id: string
  name: string
  collections: readonly string[]
}

/** What a store knows of organizations, their tokens and budgets, beside the rows of their lists. Each method is one short transaction. */
export interface Tokens {
  /**
   * Notes what is configured now; other organizations and jobs stay, marked as not configured. Call it first.
   */
  register(organizations: readonly RegisteredOrganization[]): Promise<void>
  /** A name for a token that reveals nothing: its hash with a salt of this mirror. */
  fingerprint(token: string): string
  /** Notes which token an organization uses from now on. It is held if that was refused before; the hold of its former token is that one's alone. */
  useToken(organizationId: string, fingerprint: string): Promise<void>
  holdOf(fingerprint: string): {
    /** Why it is held; null if `resume` lifted the hold of one of its organizations. As `refresh` read it last, where there is one. */
    heldReason(): string | null
    /** Reads it, where that takes time. */
    refresh?(): Promise<void>
  }
  /** Why an organization must not use its token. */
  heldReasonOfOrganization(organizationId: string, fingerprint: string): Promise<string | null>
  hold(organizationIds: readonly string[], fingerprint: string, reason: string, at: string): Promise<void>
  /**
   * Lifts every hold of these organizations, and ends the pauses of their budgets, also of the tokens that
   * they used last. Returns the names of those that were held.
   */
  resume(organizationIds: readonly string[]): Promise<string[]>
  budgets: BudgetStore
}

/** The methods that are the same in both stores. `begin` makes the rule, again if its transaction runs twice. */
export function commonTokens(
  dialect: Dialect,
  reading: <T>(rule: Rule<T>) => Promise<T>,
  writing: <T>(begin: () => Rule<T>) => Promise<T>,
): Pick<Tokens, 'useToken' | 'heldReasonOfOrganization' | 'resume'> {
  return {
    async useToken(id, fingerprint) {
      const text = 'SELECT last_fingerprint AS last FROM organizations WHERE id = :id'
      const row = await reading(one<{ last: string | null }>(text, { id }))
      // Mostly nothing has changed, and then no lock is needed.
      if (row?.last !== fingerprint) await writing(() => useToken(id, fingerprint))
    },
    async heldReasonOfOrganization(id, fingerprint) {
      const text =
        'SELECT reason FROM sync_refused_tokens WHERE organization_id = :id AND fingerprint = :fingerprint'
      const row = await reading(one<{ reason: string }>(text, { id, fingerprint }))
      return row?.reason ?? null
    },
    resume: (organizationIds) => writing(() => resume(dialect, organizationIds)),
  }
}

/** The mirror's salt; empty if there is none yet. */
export function* readSalt(): Rule<string> {
  return (yield* setting('salt')) ?? ''
}

/** Returns the mirror's salt. `newSalt` makes one if there is none; of several processes the first one's is used. */
export function* makeSalt(newSalt: () => string): Rule<string> {
  const known = yield* readSalt()
  if (known !== '') return known
  yield* run(
    "INSERT INTO sync_settings (name, value) VALUES ('salt', :value) ON CONFLICT (name) DO NOTHING",
    {
      value: newSalt(),
    },
  )
  return yield* readSalt()
}

export function fingerprintOf(token: string, salt: string): string {
  return createHash('sha256').update(`${salt}\0${token}`).digest('hex').slice(0, 32)
}

const ORGANIZATION_COLUMNS = { id: 'text', name: 'text', configured: 'bigint' }
const JOB_COLUMNS = { organization_id: 'text', collection: 'text', configured: 'bigint' }

export function* register(dialect: Dialect, organizations: readonly RegisteredOrganization[]): Rule<void> {
  const wanted = organizations.map(({ id, name }) => ({ id, name, configured: 1 }))
  const jobs = organizations.flatMap(({ id, collections }) =>
    collections.map((collection) => ({ organization_id: id, collection, configured: 1 })),
  )
  yield* configure(dialect, 'organizations', ORGANIZATION_COLUMNS, ['id'], wanted)
  yield* configure(dialect, 'sync_jobs', JOB_COLUMNS, ['organization_id', 'collection'], jobs)
}

/**
 * Marks these rows as configured, and all others as not. Rows that are marked already are not written: on a server, workers that write pages
 * have the rows of their jobs locked, and would wait for this process while it waits for them.
 */
function* configure(
  dialect: Dialect,
  table: string,
  columns: Columns,
  key: readonly string[],
  wanted: readonly Values[],
): Rule<void> {
  const names = Object.keys(columns)
  const known = yield* all<Values>(`SELECT ${names.join(', ')} FROM ${table}`)
  const before = new Set(known.map((row) => textIn(row, names)))
  const keys = new Set(wanted.map((row) => textIn(row, key)))
  const former = known.filter((row) => row.configured !== 0 && !keys.has(textIn(row, key)))
  const changed: Values[] = [
    ...former.map((row) => ({ ...row, configured: 0 })),
    ...wanted.filter((row) => !before.has(textIn(row, names))),
  ]
  const line = dialect.lines(columns)
  yield* line.run(
    `
      INSERT INTO ${table} (${names.join(', ')})
      ${line.rows(names.map(line.value))}
      ON CONFLICT (${key.join(', ')}) DO UPDATE
      SET ${names.map((name) => `${name} = excluded.${name}`).join(', ')}
    `,
    changed.map((row) => names.map((name) => row[name] ?? null)),
  )
}

function textIn(row: Values, columns: readonly string[]): string {
  return JSON.stringify(columns.map((name) => row[name]))
}

/** An organization that comes with another token leaves the hold of its former one, and gets that of this one, if it was refused. */
function* useToken(id: string, fingerprint: string): Rule<void> {
  yield* run(
    `
      INSERT INTO sync_refused_tokens (organization_id, fingerprint, reason, since)
      SELECT :id, fingerprint, reason, since FROM sync_refused_tokens WHERE fingerprint = :fingerprint LIMIT 1
      ON CONFLICT DO NOTHING
    `,
    { id, fingerprint },
  )
  yield* run(
    `
      UPDATE organizations
      SET
        last_fingerprint = :fingerprint,
        (held_since, held_reason) = (
          SELECT since, reason
          FROM sync_refused_tokens
          WHERE organization_id = :id AND fingerprint = :fingerprint
        )
      WHERE id = :id AND last_fingerprint IS DISTINCT FROM :fingerprint
    `,
    { id, fingerprint },
  )
}

/** Why a token is held, unless one of the organizations that use it is free; null: it is not. */
export function* heldReasonOfToken(fingerprint: string): Rule<string | null> {
  const row = yield* one<{ reason: string }>(
    `
      SELECT reason
      FROM sync_refused_tokens
      WHERE fingerprint = :fingerprint AND NOT EXISTS (
        SELECT 1 FROM organizations WHERE last_fingerprint = :fingerprint AND held_since IS NULL AND configured = 1
      )
      LIMIT 1
    `,
    { fingerprint },
  )
  return row?.reason ?? null
}

/** Returns why the token is held now; null if the mirror has none of these organizations any more. */
export function* hold(
  dialect: Dialect,
  ...[organizationIds, fingerprint, reason, at]: Parameters<Tokens['hold']>
): Rule<string | null> {
  const chosen = `SELECT chosen.value FROM ${dialect.each(':ids::text', 'chosen')}`
  const refusal = { ids: JSON.stringify(organizationIds), fingerprint, reason, at }
  yield* run(
    `
      UPDATE organizations
      SET held_since = :at, held_reason = :reason, last_fingerprint = :fingerprint
      WHERE id IN (${chosen})
    `,
    refusal,
  )
  yield* run(
    `
      INSERT INTO sync_refused_tokens (organization_id, fingerprint, reason, since)
      SELECT id, :fingerprint, :reason, :at FROM organizations WHERE id IN (${chosen})
      ON CONFLICT (organization_id, fingerprint) DO UPDATE SET reason = excluded.reason, since = excluded.since
    `,
    refusal,
  )
  // Only organizations that use the token now decide whether it is held.
  yield* run(
    'UPDATE organizations SET last_fingerprint = NULL WHERE last_fingerprint = :fingerprint AND held_since IS NULL',
    { fingerprint },
  )
  return yield* heldReasonOfToken(fingerprint)
}

/** Returns the names of the organizations that were held. */
function* resume(dialect: Dialect, organizationIds: readonly string[]): Rule<string[]> {
  const ids = JSON.stringify(organizationIds)
  const chosen = `SELECT chosen.value FROM ${dialect.each(':ids::text', 'chosen')}`
  // Requests of the last minute still count.
  yield* run(
    `
      UPDATE sync_gates
      SET closed_until = :never, version = version + 1
      WHERE scope = 'all' OR scope IN (${chosen})
        OR scope IN (SELECT last_fingerprint FROM organizations WHERE id IN (${chosen}))
    `,
    { ids, never: timeOf(0) },
  )
  yield* run(`DELETE FROM sync_refused_tokens WHERE organization_id IN (${chosen})`, { ids })
  const lifted = yield* all<{ name: string }>(
    `
      UPDATE organizations SET held_since = NULL, held_reason = NULL
      WHERE id IN (${chosen}) AND held_since IS NOT NULL
      RETURNING name
    `,
    { ids },
  )
  return lifted.map(({ name }) => name).toSorted()
}
