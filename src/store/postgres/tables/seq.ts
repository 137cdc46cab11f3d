import { type EventTime, SEQ_COLUMNS } from '../../columns/changes-view.ts'
import { quoted, type Sql } from '../sql.ts'

// `seq` of `orders_changes`; core/seq.ts takes the numbers.

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
