import { createHash } from 'node:crypto'
import { lastRunsOf } from '../core/runs.ts'
import { NEVER_RUN, type Tokens } from '../tokens.ts'
import { createBudgets, HELD_REASON, LATE_MS, MOST_TRIES } from './budgets.ts'
import { runRule } from './driver.ts'
import type { ServerClock } from './server/clock.ts'
import type { Server } from './server/server.ts'
import { storable } from './sql.ts'

const LIFTED = 'held_since = NULL, held_reason = NULL, held_fingerprint = NULL'

/** `newSalt`: only the first one of all workers is used. */
export async function createTokens(
  server: Server,
  clock: ServerClock,
  newSalt: () => string,
): Promise<Tokens> {
  const salt = await saltOf(server, newSalt)
  /** Why tokens are held, as they were read last. */
  const reasons = new Map<string, string | null>()
  /** Tokens whose permit was taken since they were asked about: it has brought the news. */
  const permitted = new Set<string>()

  /** How often this process has written each token's hold. */
  const writes = new Map<string, number>()
  const noteWrite = (fingerprint: string) => writes.set(fingerprint, (writes.get(fingerprint) ?? 0) + 1)

  /** An answer that was on its way while this process wrote a hold may not know it. */
  function beginAsking(fingerprint: string): (reason: string | null) => boolean {
    const before = writes.get(fingerprint)
    return (reason) => {
      const isNews = writes.get(fingerprint) === before
      if (isNews) reasons.set(fingerprint, reason)
      return isNews
    }
  }

  async function readReason(fingerprint: string, tries = MOST_TRIES): Promise<void> {
    const note = beginAsking(fingerprint)
    const begun = clock.elapsed()
    const [row] = await server.rows<{ held_reason: string }>(HELD_REASON, [fingerprint])
    if (!note(row?.held_reason ?? null)) return readReason(fingerprint, tries)
    if (clock.elapsed() - begun > LATE_MS && tries > 1) await readReason(fingerprint, tries - 1)
  }

  return {
    register: (organizations) =>
      server.transaction(async (sql) => {
        const jobs = organizations.flatMap(({ id, collections }) => collections.map((name) => [id, name]))
        // In one order, so that workers that start at once do not wait for each other crosswise.
        await sql.exec('LOCK TABLE organizations, sync_jobs IN SHARE ROW EXCLUSIVE MODE')
        await sql.rows(REGISTER_ORGANIZATIONS, [
          organizations.map(({ id }) => id),
          organizations.map(({ name }) => name),
        ])
        await sql.rows(REGISTER_JOBS, [jobs.map(([id]) => id), jobs.map(([, name]) => name)])
      }),
    fingerprint: (token) => createHash('sha256').update(`${salt}\0${token}`).digest('hex').slice(0, 32),
    async useToken(organizationId, fingerprint) {
      const [row] = await server.rows<{ last: string | null }>(
        'SELECT last_fingerprint AS last FROM organizations WHERE id = $1',
        [organizationId],
      )
      if (row?.last !== fingerprint)
        await server.transaction(async (sql) => {
          await sql.rows(LIFT_REPLACED, [organizationId, fingerprint])
          await sql.rows(SHARE_HOLD, [organizationId, fingerprint])
          await sql.rows(NOTE_TOKEN, [organizationId, fingerprint])
        })
      await readReason(fingerprint)
    },
    holdOf: (fingerprint) => ({
      heldReason: () => reasons.get(fingerprint) ?? null,
      async refresh() {
        if (!permitted.delete(fingerprint)) await readReason(fingerprint)
      },
    }),
    async heldReasonOf(organizationId, fingerprint) {
      const [row] = await server.rows<{ reason: string }>(
        'SELECT held_reason AS reason FROM organizations WHERE id = $1 AND held_fingerprint = $2',
        [organizationId, fingerprint],
      )
      return row?.reason ?? null
    },
    async hold(organizationIds, fingerprint, reason, at) {
      // A worker that is told to stop while the server is away still writes it, and its caller tries again.
      const [row] = await server.attempt(async (sql) => {
        await sql.rows(HOLD, [organizationIds, fingerprint, storable(reason), at])
        await sql.rows(FORGET_FORMER, [fingerprint])
        return sql.rows<{ held_reason: string }>(HELD_REASON, [fingerprint])
      })
      noteWrite(fingerprint)
      permitted.delete(fingerprint)
      reasons.set(fingerprint, row?.held_reason ?? null)
    },
    async liftHold(fingerprint) {
      await server.rows(`UPDATE organizations SET ${LIFTED} WHERE held_fingerprint = $1`, [fingerprint])
      noteWrite(fingerprint)
      reasons.set(fingerprint, null)
    },
    resume: (organizationIds) =>
      server.transaction(async (sql) => {
        await sql.rows(END_PAUSES, [organizationIds])
        const lifted = await sql.rows<{ name: string }>(
          `UPDATE organizations SET ${LIFTED} WHERE id = ANY ($1) AND held_since IS NOT NULL RETURNING name`,
          [organizationIds],
        )
        return lifted.map(({ name }) => name)
      }),
    budgets: createBudgets(server, clock, (scope) => {
      const note = beginAsking(scope)
      const begun = clock.elapsed()
      return (reason) => {
        // An answer that waited for a halted process is no news.
        if (note(reason) && clock.elapsed() - begun <= LATE_MS) permitted.add(scope)
        else permitted.delete(scope)
      }
    }),
    async lastRuns(organizationId, collection) {
      const [found] = await runRule(server, lastRunsOf({ organization: organizationId, collection }))
      return found?.last ?? NEVER_RUN
    },
    async allLastRuns() {
      const all = await runRule(server, lastRunsOf(null))
      const byJob = new Map(all.map(({ job, last }) => [jobName(job.organization, job.collection), last]))
      return (organizationId, collection) => byJob.get(jobName(organizationId, collection)) ?? NEVER_RUN
    },
  }
}

function jobName(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

async function saltOf(server: Server, newSalt: () => string): Promise<string> {
  const find = "SELECT value FROM sync_settings WHERE name = 'salt'"
  const [known] = await server.rows<{ value: string }>(find)
  if (known) return known.value
  await server.rows(
    "INSERT INTO sync_settings (name, value) VALUES ('salt', $1) ON CONFLICT (name) DO NOTHING",
    [newSalt()],
  )
  const [made] = await server.rows<{ value: string }>(find)
  return made?.value ?? ''
}

// A row that is as it should be is not written.
const REGISTER_ORGANIZATIONS = `
  WITH wanted AS (SELECT * FROM unnest($1::text[], $2::text[]) AS organization (id, name)),
    former AS (
      UPDATE organizations SET configured = 0 WHERE configured <> 0 AND id NOT IN (SELECT id FROM wanted)
    )
  INSERT INTO organizations AS known (id, name, configured)
  SELECT id, name, 1 FROM wanted
  ON CONFLICT (id) DO UPDATE SET name = excluded.name, configured = 1
  WHERE known.name <> excluded.name OR known.configured <> 1
`

const REGISTER_JOBS = `
  WITH wanted AS (SELECT * FROM unnest($1::text[], $2::text[]) AS job (organization_id, collection)),
    former AS (
      UPDATE sync_jobs
      SET configured = 0
      WHERE configured <> 0 AND (organization_id, collection) NOT IN (SELECT organization_id, collection FROM wanted)
    )
  INSERT INTO sync_jobs AS known (organization_id, collection, configured)
  SELECT organization_id, collection, 1 FROM wanted
  ON CONFLICT (organization_id, collection) DO UPDATE SET configured = 1
  WHERE known.configured <> 1
`

const LIFT_REPLACED = `
  UPDATE organizations SET ${LIFTED} WHERE id = $1 AND held_fingerprint IS NOT NULL AND held_fingerprint <> $2
`

// An organization that starts to use a held token gets its hold.
const SHARE_HOLD = `
  UPDATE organizations
  SET
    (held_since, held_reason, held_fingerprint) = (
      SELECT held_since, held_reason, held_fingerprint
      FROM organizations
      WHERE held_fingerprint = $2 AND configured = 1
      LIMIT 1
    )
  WHERE id = $1 AND held_since IS NULL AND last_fingerprint IS DISTINCT FROM $2
`

const NOTE_TOKEN = `
  UPDATE organizations SET last_fingerprint = $2 WHERE id = $1 AND last_fingerprint IS DISTINCT FROM $2
`

const HOLD = `
  UPDATE organizations
  SET held_since = $4, held_reason = $3, held_fingerprint = $2, last_fingerprint = $2
  WHERE id = ANY ($1)
`

// Only organizations that use the token now decide whether it is held.
const FORGET_FORMER = `
  UPDATE organizations
  SET last_fingerprint = NULL
  WHERE last_fingerprint = $1 AND held_fingerprint IS DISTINCT FROM $1
`

// Requests of the last minute still count.
const END_PAUSES = `
  UPDATE sync_gates
  SET closed_until = to_timestamp(0), version = version + 1
  WHERE scope = 'all' OR scope = ANY ($1)
    OR scope IN (SELECT last_fingerprint FROM organizations WHERE id = ANY ($1))
`
