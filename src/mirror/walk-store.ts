import type { Checkpoint, Coverage, Job, OpenWalk, Walk, WalkBeginning } from '../sync/types.ts'
import type { Connection } from './database.ts'
import { type LedgerLine, noteSeen } from './ledger-line.ts'
import { createSeenItems, type SeenItems } from './seen-items.ts'
import { unplanned } from './sql.ts'

interface WalkRow {
  id: number
  organization: string
  collection: string
  pages: number
  kind: Walk['kind']
  first_page: number
  next_page: number | null
  passes: number
  rows_seen: number
  account: string
}

/** `sync_walks`, the page ledger, and the items that open walks have seen. */
export interface WalkStore {
  open(job: Job): OpenWalk[]
  begin(job: Job, beginning: WalkBeginning, at: string): Walk
  /**
   * Loads an open walk; the caller then recalls what it has seen. One that has read no page yet starts now: its start
   * becomes the `as_of` of the list, and an earlier run may have been refused long ago.
   */
  resume(walkId: number, at: string): Walk
  recall: SeenItems['recall']
  whereSeen: SeenItems['where']
  whereAllSeen: SeenItems['whereAll']
  seenLedger: SeenItems['ledger']
  /** Whether the job's last complete full walk saw the list move. */
  expectsMoves(job: Job): boolean
  /** Distinct items of an open walk that could be placed, and whether one that could not had never come before. */
  tally(walkId: number): WalkTally
  addNewRejects(walkId: number, count: number): void
  /** The number that the walk's next answer gets in the page ledger. */
  nextOrdinal(walkId: number): number
  /** A line of the ledger, and the checkpoint with it. */
  addAnswer(walkId: number, answer: LedgerLine, next: Checkpoint, at: string): void
  saveCheckpoint(walkId: number, next: Checkpoint, at: string): void
  complete(walkId: number, coverage: Coverage | null, untrusted: string | null, at: string): void
  abandon(walkId: number, at: string): void
}

export interface WalkTally {
  placed: number
  newRejects: number
}

export function createWalkStore(connection: Connection): WalkStore {
  const seen = createSeenItems(connection)
  const openWalks = connection.prepare(`
    SELECT id, origin, kind, path, filters, first_page AS firstPage, updated_at AS updatedAt
    FROM sync_walks
    WHERE organization_id = ? AND collection = ? AND status = 'open'
    ORDER BY id
  `)
  const insertWalk = connection.prepare(`
    INSERT INTO sync_walks (
      organization_id, collection, kind, filters, status, next_page, passes, started_at, updated_at, origin, path, first_page, account
    ) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?)
  `)
  const walkById = connection.prepare(
    `SELECT
      id, organization_id AS organization, collection, kind, first_page, next_page, passes, pages, rows_seen, account
    FROM sync_walks
    WHERE id = ?`,
  )
  const renewStart = connection.prepare('UPDATE sync_walks SET started_at = ?, updated_at = ? WHERE id = ?')
  const insertAnswer = connection.prepare(`
    INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, keys, read_at, why, places)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
  `)
  const nextOrdinal = connection
    .prepare(`SELECT coalesce(max(ordinal), 0) + 1 FROM sync_pages WHERE walk_id = ${unplanned('INTEGER')}`)
    .pluck()
  const lastCoverage = connection
    .prepare(`
      SELECT coverage
      FROM sync_walks
      WHERE organization_id = ? AND collection = ? AND status = 'complete' AND kind = 'full'
      ORDER BY id DESC
      LIMIT 1
    `)
    .pluck()
  const countAnswer = connection.prepare(`
    UPDATE sync_walks
    SET pages = pages + 1, rows_seen = rows_seen + ?, total = coalesce(?, total)
    WHERE id = ?
  `)
  const updateCheckpoint = connection.prepare(
    'UPDATE sync_walks SET next_page = ?, passes = ?, account = ?, updated_at = ? WHERE id = ?',
  )
  const findTally = connection.prepare(
    'SELECT rows_seen AS seen, new_rejects AS newRejects FROM sync_walks WHERE id = ?',
  )
  const addNewRejects = connection.prepare('UPDATE sync_walks SET new_rejects = new_rejects + ? WHERE id = ?')
  const completeWalk = connection.prepare(`
    UPDATE sync_walks
    SET status = 'complete', coverage = ?, untrusted = ?, next_page = NULL, updated_at = ?, finished_at = ?
    WHERE id = ?
  `)
  const abandonWalk = connection.prepare(`
    UPDATE sync_walks
    SET status = 'abandoned', updated_at = ?, finished_at = ?
    WHERE id = ? AND status = 'open'
  `)

  function saveCheckpoint(walkId: number, next: Checkpoint, at: string): void {
    updateCheckpoint.run(next.nextPage, next.pass, accountText(next), at, walkId)
  }

  function expectsMoves(organizationId: string, collection: string): boolean {
    const coverage = lastCoverage.get(organizationId, collection)
    return coverage === 'repaired' || coverage === 'drifted'
  }

  function abandon(walkId: number, at: string): void {
    abandonWalk.run(at, at, walkId)
    seen.forget(walkId)
  }

  return {
    open: (job) =>
      (
        openWalks.all(job.organization.id, job.collection.name) as (Omit<OpenWalk, 'updatedAt'> & {
          updatedAt: string
        })[]
      ).map((walk) => ({ ...walk, updatedAt: Date.parse(walk.updatedAt) })),
    begin(job, { plan, filters, first, abandon: abandoned }, at) {
      for (const id of abandoned) abandon(id, at)
      const account = accountText(first)
      const { lastInsertRowid } = insertWalk.run(
        job.organization.id,
        job.collection.name,
        plan.kind,
        filters,
        first.nextPage,
        first.pass,
        at,
        at,
        plan.origin,
        job.collection.path,
        plan.firstPage,
        account,
      )
      const id = Number(lastInsertRowid)
      seen.begin(id)
      return {
        id,
        kind: plan.kind,
        firstPage: plan.firstPage,
        checkpoint: first,
        resumed: false,
        rowsSeen: 0,
        expectsMoves: expectsMoves(job.organization.id, job.collection.name),
      }
    },
    resume(walkId, at) {
      const row = walkById.get(walkId) as WalkRow
      const resumed = row.pages > 0
      if (!resumed) renewStart.run(at, at, walkId)
      seen.begin(walkId)
      const { ask, account } = JSON.parse(row.account) as Pick<Checkpoint, 'ask' | 'account'>
      const checkpoint = { pass: row.passes, nextPage: row.next_page, ask, account }
      return {
        id: row.id,
        kind: row.kind,
        firstPage: row.first_page,
        checkpoint,
        resumed,
        rowsSeen: row.rows_seen,
        expectsMoves: resumed ? account.watching : expectsMoves(row.organization, row.collection),
      }
    },
    recall: seen.recall,
    whereSeen: seen.where,
    whereAllSeen: seen.whereAll,
    seenLedger: seen.ledger,
    expectsMoves: ({ organization, collection }) => expectsMoves(organization.id, collection.name),
    tally(walkId) {
      const { seen: items, newRejects } = findTally.get(walkId) as { seen: number; newRejects: number }
      return { placed: items - seen.rejects(walkId), newRejects }
    },
    addNewRejects: (walkId, count) => {
      addNewRejects.run(count, walkId)
    },
    nextOrdinal: (walkId) => nextOrdinal.get(walkId) as number,
    addAnswer(walkId, line, next, at) {
      const { ordinal, pass, page, total, why, marks, placed, isPlaced, newToWalk } = line
      const found = why === 'forward' ? null : JSON.stringify(placesFound(placed, isPlaced))
      insertAnswer.run(walkId, ordinal, pass, page, total, JSON.stringify(marks), at, why, found)
      noteSeen(seen, walkId, line)
      countAnswer.run(newToWalk, total, walkId)
      saveCheckpoint(walkId, next, at)
    },
    saveCheckpoint,
    complete(walkId, coverage, untrusted, at) {
      completeWalk.run(coverage, untrusted, at, at, walkId)
      seen.forget(walkId)
    },
    abandon,
  }
}

function placesFound(placed: LedgerLine['placed'], isPlaced: LedgerLine['isPlaced']) {
  return placed.map(({ segment, position }, entry) => (isPlaced[entry] ? [segment, position] : null))
}

function accountText({ ask, account }: Checkpoint): string {
  return JSON.stringify({ ask, account })
}
