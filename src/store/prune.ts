// What a job's runs left and no walk needs, in either store.

/** For an interrupted walk the ledger of others is kept so long: a backfill may stay open for ever. Milliseconds. */
const OVERLAP_KEPT_MS = 3 * 86_400_000

const NOT_TRUSTED = 'it was interrupted for more than three days, and other walks read the list meanwhile'

/** Refreshes that found nothing, and walks in their place, are kept so long. Milliseconds. */
const BRIEF_KEPT_MS = 86_400_000

/** ISO 8601. */
export interface PruneTimes {
  /** Older runs and closed walks go. */
  before: string
  /** So do older refreshes that found nothing, and walks in their place. */
  briefBefore: string
  /** Open walks that were interrupted before this time are trusted no longer. */
  overlapBefore: string
}

/** @param ago The time so many milliseconds ago. */
export function pruneTimes(ago: (ms: number) => string, keepRuns: number): PruneTimes {
  return { before: ago(keepRuns), briefBefore: ago(BRIEF_KEPT_MS), overlapBefore: ago(OVERLAP_KEPT_MS) }
}

/** The parts of the SQL that differ between the stores. */
export interface PruneDialect extends Record<keyof PruneTimes, string> {
  organization: string
  collection: string
  /** The most rows that one statement deletes. */
  most: string
  /** A join whose second table is read by the index on what joins it. */
  join: string
  /** The column that identifies a line of the page ledger. */
  line: string
  /** One that rises with each line. */
  order: string
}

export interface PruneSql {
  distrust: string
  /**
   * They delete a batch: the page ledger of closed walks, except the last two complete full ones; closed walks and rows of `sync_runs`
   * from before a time, except the last run and the last complete full walk.
   */
  deletes: string[]
}

export function pruneSql(dialect: PruneDialect): PruneSql {
  const { organization, collection, before, briefBefore, overlapBefore, most, join, line, order } = dialect
  const ofJob = `organization_id = ${organization} AND collection = ${collection}`
  /** The last complete full walks of the job, the latest first. */
  const lastComplete = `
    SELECT id
    FROM sync_walks
    WHERE ${ofJob} AND status = 'complete' AND kind = 'full'
    ORDER BY id DESC
  `
  const oldWalks = `
    SELECT id
    FROM (
      SELECT id, status FROM sync_walks WHERE ${ofJob} AND status <> 'open' AND updated_at < ${before}
      UNION
      SELECT id, status FROM sync_walks WHERE ${ofJob} AND brief = 1 AND updated_at < ${briefBefore}
    ) AS old
    WHERE status <> 'open' AND id NOT IN (${lastComplete} LIMIT 1)
  `
  // An open full walk needs all pages written since it began: their items are not missing. One that is not trusted removes nothing.
  const firstOpenPage = `
    SELECT coalesce(min(page.${order}), ${Number.MAX_SAFE_INTEGER})
    FROM sync_walks AS opened
    ${join} sync_pages AS page ON page.walk_id = opened.id AND page.ordinal = 1
    WHERE opened.organization_id = ${organization} AND opened.collection = ${collection}
      AND opened.status = 'open' AND opened.kind = 'full' AND opened.untrusted IS NULL
  `
  return {
    distrust: `
      UPDATE sync_walks
      SET untrusted = '${NOT_TRUSTED}'
      WHERE ${ofJob} AND status = 'open' AND kind = 'full' AND pages > 0 AND updated_at < ${overlapBefore} AND untrusted IS NULL
    `,
    deletes: [
      `
        DELETE FROM sync_pages
        WHERE ${line} IN (
          SELECT page.${line}
          FROM sync_walks
          ${join} sync_pages AS page ON page.walk_id = sync_walks.id
          WHERE ${ofJob} AND status <> 'open'
            AND (id NOT IN (${lastComplete} LIMIT 2) OR id IN (${oldWalks}))
            AND page.${order} < (${firstOpenPage})
          LIMIT ${most}
        )
      `,
      // A walk goes after its page ledger, since a later walk may get the same id.
      `
        DELETE FROM sync_walks
        WHERE id IN (
          ${oldWalks} AND NOT EXISTS (SELECT 1 FROM sync_pages WHERE walk_id = old.id) ORDER BY id LIMIT ${most}
        )
      `,
      `
        DELETE FROM sync_runs
        WHERE id IN (
          SELECT id FROM (SELECT id, started_at FROM sync_runs WHERE ${ofJob} ORDER BY id LIMIT ${most}) AS oldest
          WHERE started_at < ${before}
          UNION
          SELECT id FROM sync_runs WHERE ${ofJob} AND brief = 1 AND started_at < ${briefBefore} AND status <> 'running'
          EXCEPT
          SELECT max(id) FROM sync_runs WHERE ${ofJob}
        )
      `,
    ],
  }
}
