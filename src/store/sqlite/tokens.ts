import { createHash } from 'node:crypto'
import type { BudgetStore } from '../../sync/types.ts'
import { lastRunsOf } from '../core/runs.ts'
import { type LastRuns, NEVER_RUN, type Tokens } from '../tokens.ts'
import { runRule } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import { type Connection, castParameter } from './sql.ts'
import type { Transact } from './transaction.ts'

/** What the mirror knows of organizations, their tokens and budgets. It reads synchronously. */
export interface SqliteTokens extends Tokens {
  heldReasonOf(organizationId: string, fingerprint: string): string | null
  lastRuns(organizationId: string, collection: string): LastRuns
}

/** `newSalt`: only its first value in a mirror's life is used. */
export function createTokens(connection: Connection, write: Transact, newSalt: () => string): SqliteTokens {
  const budgets = createStoredBudgets(connection, write)
  const setting = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck()
  const addSetting = connection.prepare('INSERT OR IGNORE INTO sync_settings (name, value) VALUES (?, ?)')
  const unconfigure = connection.prepare('UPDATE organizations SET configured = 0')
  const unconfigureJobs = connection.prepare('UPDATE sync_jobs SET configured = 0')
  const upsertOrganization = connection.prepare(`
    INSERT INTO organizations (id, name, configured) VALUES (?, ?, 1)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, configured = 1
  `)
  const upsertJob = connection.prepare(`
    INSERT INTO sync_jobs (organization_id, collection, configured) VALUES (?, ?, 1)
    ON CONFLICT (organization_id, collection) DO UPDATE SET configured = 1
  `)
  const LIFTED = 'held_since = NULL, held_reason = NULL, held_fingerprint = NULL'
  const liftReplaced = connection.prepare(
    `UPDATE organizations SET ${LIFTED} WHERE id = ? AND held_fingerprint IS NOT NULL AND held_fingerprint <> ?`,
  )
  // An organization that starts to use a held token gets its hold.
  const shareHold = connection.prepare(`
    UPDATE organizations
    SET
      (held_since, held_reason, held_fingerprint) = (
        SELECT held_since, held_reason, held_fingerprint
        FROM organizations
        WHERE held_fingerprint = :fingerprint AND configured = 1
        LIMIT 1
      )
    WHERE id = :id AND held_since IS NULL AND last_fingerprint IS NOT :fingerprint
  `)
  const lastToken = connection.prepare('SELECT last_fingerprint FROM organizations WHERE id = ?').pluck()
  const noteToken = connection.prepare(
    'UPDATE organizations SET last_fingerprint = ? WHERE id = ? AND last_fingerprint IS NOT ?',
  )
  const heldReason = connection
    .prepare(`
      SELECT held_reason
      FROM organizations
      WHERE held_fingerprint = ${castParameter('TEXT', ':fingerprint')} AND NOT EXISTS (
        SELECT 1
        FROM organizations
        WHERE last_fingerprint = ${castParameter('TEXT', ':fingerprint')} AND held_since IS NULL AND configured = 1
      )
      LIMIT 1
    `)
    .pluck()
  const heldReasonOf = connection
    .prepare('SELECT held_reason FROM organizations WHERE id = ? AND held_fingerprint = ?')
    .pluck()
  const hold = connection.prepare(`
    UPDATE organizations
    SET held_since = ?, held_reason = ?, held_fingerprint = :fingerprint, last_fingerprint = :fingerprint
    WHERE id = ?
  `)
  // Only organizations that use the token now decide whether it is held.
  const forgetFormer = connection.prepare(`
    UPDATE organizations
    SET last_fingerprint = NULL
    WHERE last_fingerprint = :fingerprint AND held_fingerprint IS NOT :fingerprint
  `)
  const liftHold = connection.prepare(`UPDATE organizations SET ${LIFTED} WHERE held_fingerprint = ?`)
  const liftOne = connection
    .prepare(`UPDATE organizations SET ${LIFTED} WHERE id = ? AND held_since IS NOT NULL RETURNING name`)
    .pluck()
  const read = <T>(task: () => T): T => translatingErrors(connection.name, task)

  return {
    register: (organizations) =>
      write(() => {
        addSetting.run('salt', newSalt())
        unconfigure.run()
        unconfigureJobs.run()
        for (const { id, name, collections } of organizations) {
          upsertOrganization.run(id, name)
          for (const collection of collections) upsertJob.run(id, collection)
        }
      }),
    fingerprint: (token) => {
      const salt = read(() => setting.get('salt')) as string
      return createHash('sha256').update(`${salt}\0${token}`).digest('hex').slice(0, 32)
    },
    useToken: async (organizationId, fingerprint) => {
      // Mostly nothing has changed, and then no lock is needed.
      if (read(() => lastToken.get(organizationId)) === fingerprint) return
      await write(() => {
        liftReplaced.run(organizationId, fingerprint)
        shareHold.run({ id: organizationId, fingerprint })
        noteToken.run(fingerprint, organizationId, fingerprint)
      })
    },
    holdOf: (fingerprint) => ({
      heldReason: () => read(() => (heldReason.get({ fingerprint }) as string | undefined) ?? null),
    }),
    heldReasonOf: (organizationId, fingerprint) =>
      read(() => (heldReasonOf.get(organizationId, fingerprint) as string | undefined) ?? null),
    hold: (organizationIds, fingerprint, reason, at) =>
      write(() => {
        for (const id of organizationIds) hold.run(at, reason, id, { fingerprint })
        forgetFormer.run({ fingerprint })
      }),
    liftHold: (fingerprint) =>
      write(() => {
        liftHold.run(fingerprint)
      }),
    resume: (organizationIds) =>
      write(() => {
        for (const id of organizationIds) budgets.forgetWaits(id)
        return organizationIds.flatMap((id) => liftOne.all(id) as string[])
      }),
    budgets,
    lastRuns: (organization, collection) => {
      const [found] = read(() => runRule(connection, lastRunsOf({ organization, collection })))
      return found?.last ?? NEVER_RUN
    },
  }
}

/** `sync_gates`: the budgets of requests, by scope; `next` runs under the file's lock. */
interface SqliteBudgets extends BudgetStore {
  /** Ends the pauses that an organization may wait for. Call it inside a transaction. */
  forgetWaits(organizationId: string): void
}

function createStoredBudgets(connection: Connection, write: Transact): SqliteBudgets {
  const find = connection.prepare('SELECT closed_until, known FROM sync_gates WHERE scope = ?')
  const save = connection.prepare(`
    INSERT OR REPLACE INTO sync_gates (scope, closed_until, known, waiting_for, waiting_until)
    VALUES (?, ?, ?, ?, ?)
  `)
  // Requests of the last minute still count.
  const endPauses = connection.prepare(`
    UPDATE sync_gates
    SET closed_until = '${NO_ROW.closed_until}'
    WHERE scope IN ('all', ?) OR scope = (SELECT last_fingerprint FROM organizations WHERE id = ?)
  `)
  const rowOf = (scope: string) => (find.get(scope) as Row | undefined) ?? NO_ROW

  return {
    read: async (scope) => {
      const row = translatingErrors(connection.name, () => rowOf(scope))
      return { closedUntil: Date.parse(row.closed_until), known: row.known, version: versionOf(row) }
    },
    compareAndSet: async (scope, version, next) => {
      // Another process was faster, which shows without the lock.
      if (translatingErrors(connection.name, () => versionOf(rowOf(scope))) !== version) return null
      return write(() => {
        if (versionOf(rowOf(scope)) !== version) return null
        const { closedUntil, known, waitingFor, waitingUntil } = next()
        const closed_until = timeOf(closedUntil)
        save.run(scope, closed_until, known, waitingFor, waitingUntil === 0 ? null : timeOf(waitingUntil))
        return versionOf({ closed_until, known })
      })
    },
    forgetWaits: (organizationId) => {
      endPauses.run(organizationId, organizationId)
    },
  }
}

interface Row {
  closed_until: string
  known: string | null
}

const NO_ROW: Row = { closed_until: timeOf(0), known: null }

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** The content itself: while it is the same, a decision based on it is still right. */
function versionOf({ closed_until, known }: Row): string {
  return `${closed_until} ${known}`
}
