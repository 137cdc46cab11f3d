import { type EventTime, SEQ_COLUMNS } from '../../columns/changes-view.ts'
import { type Connection, quoted } from '../sql.ts'

// `seq` of `orders_changes`; core/seq.ts takes the numbers.

/**
 * The `seq` of the event at this time of a row. Only functions that programs with an older SQLite know, too: they read the view, and the
 * indexes on this expression.
 */
export function seqSql(time: EventTime, row?: string): string {
  const [seq, at] = [SEQ_COLUMNS[time], time].map((column) => (row ? `${row}.` : '') + quoted(column))
  return `CAST(coalesce(${seq}, strftime('%s', ${at}) * 1000 + substr(${at}, 21, 3)) AS INTEGER)`
}

/** Lifts the numbers of a collection above those of all its events. */
export function raiseSeq(connection: Connection, collection: string): void {
  const [raw, history] = [`${collection}_raw`, `${collection}_history`].map(quoted)
  connection
    .prepare(`
      INSERT INTO sync_seq (collection, seq)
      SELECT ?, max(seq)
      FROM (
        SELECT max(${seqSql('_first_seen_at')}) AS seq FROM ${raw}
        UNION ALL
        SELECT max(${seqSql('_changed_at')}) FROM ${raw} WHERE "_changed_at" > "_first_seen_at"
        UNION ALL
        SELECT max(${seqSql('_valid_to')}) FROM ${history}
      )
      HAVING max(seq) IS NOT NULL
      ON CONFLICT (collection) DO UPDATE SET seq = max(seq, excluded.seq)
    `)
    .run(collection)
}
