import { type EventTime, SEQ_COLUMNS } from '../../columns/changes-view.ts'
import { quoted, type Sql } from '../sql.ts'

// `seq` of `orders_changes`: one number for each transaction that writes events of a collection. The transaction takes it by a row that it keeps
// locked until it has ended, and an ended transaction is visible before its locks are free. So no event becomes visible after one with a
// greater number: neither here, nor on a standby, which replays transactions in the order in which they ended.

/** The `seq` of the event at this time of a row. Immutable, as an index wants it: a difference of times does not depend on a time zone. */
export function seqSql(time: EventTime, row?: string): string {
  const [seq = '', at = ''] = [SEQ_COLUMNS[time], time].map(
    (column) => (row ? `${row}.` : '') + quoted(column),
  )
  return `coalesce(${seq}, ${millisecondsSql(at)})`
}

function millisecondsSql(time: string): string {
  return `(extract(epoch FROM ${time} - '1970-01-01 00:00:00+00'::timestamptz) * 1000)::bigint`
}

/**
 * The statement that returns the next number of a collection as `seq`. It is never below the milliseconds of `at` since 1970: after a restore, or
 * a failover that lost transactions, no number is given that a reader has had. `from`: where the values are from, if anything is to be taken.
 */
export function nextSeqSql(collection: string, at: string, from = ''): string {
  return `
    INSERT INTO sync_seq AS last (collection, seq)
    SELECT ${collection}, ${millisecondsSql(at)} ${from}
    ON CONFLICT (collection) DO UPDATE SET seq = greatest(last.seq + 1, excluded.seq)
    RETURNING seq
  `
}

/** Lifts the numbers of a collection above those of all its events. */
export async function raiseSeq(sql: Sql, collection: string): Promise<void> {
  const [raw, history] = [`${collection}_raw`, `${collection}_history`].map(quoted)
  await sql.rows(
    `
      INSERT INTO sync_seq AS last (collection, seq)
      SELECT $1, greatest(
        (SELECT max(${seqSql('_first_seen_at')}) FROM ${raw}),
        (SELECT max(${seqSql('_changed_at')}) FROM ${raw} WHERE "_changed_at" > "_first_seen_at"),
        (SELECT max(${seqSql('_valid_to')}) FROM ${history}),
        0
      )
      ON CONFLICT (collection) DO UPDATE SET seq = greatest(last.seq, excluded.seq)
    `,
    [collection],
  )
}
