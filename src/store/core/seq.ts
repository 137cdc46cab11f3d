import { one, type Rule } from './sql.ts'

/**
 * Takes the next number of a collection for the events of this transaction, whose rows have this time. No event becomes visible after one
 * with a greater number: a file has one writer at a time; on a server the row stays locked until the transaction has ended, and an ended
 * transaction is visible before its locks are free, on a standby too. The number is never below the time's milliseconds since 1970: after
 * a restore of an earlier copy, no number is given that a reader has had.
 */
export function* takeSeq(collection: string, at: string): Rule<number> {
  const row = yield* one<{ seq: number }>(
    `
      INSERT INTO sync_seq AS last (collection, seq) VALUES (:collection, :ms::bigint)
      ON CONFLICT (collection) DO UPDATE
      SET seq = CASE WHEN last.seq < excluded.seq THEN excluded.seq ELSE last.seq + 1 END
      RETURNING seq
    `,
    { collection, ms: Date.parse(at) },
  )
  return row?.seq ?? 0
}
