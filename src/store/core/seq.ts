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

/** Events of one window, about: so many are put in order at once, whatever follows them. */
const MOST_EVENTS = 5000

/** The first one is an hour wide: numbers are about milliseconds. */
const FIRST_WIDTH = 3_600_000n

/** A question about the events with a greater number than `after`, up to `upTo`; null: and all that follow. */
export interface SeqWindow {
  /** `count`: how many there are, as far as `most`; `read`: read them. */
  ask: 'count' | 'read'
  after: bigint
  upTo: bigint | null
  most: number
}

/**
 * Cuts the events after a number into windows that are read one after another: the first ones of a million come at once, and nobody
 * sorts all of them. Yields questions, and receives the counts.
 */
export function* seqWindows(since: bigint): Generator<SeqWindow, void, number> {
  let [after, width] = [since, FIRST_WIDTH]
  for (;;) {
    const upTo = after + width
    const events = yield { ask: 'count', after, upTo, most: MOST_EVENTS + 1 }
    if (events > MOST_EVENTS && width > 1n) {
      width = width > 4n ? width / 4n : 1n
      continue
    }
    if (events > 0) yield { ask: 'read', after, upTo, most: events }
    else if ((yield { ask: 'count', after: upTo, upTo: null, most: 1 }) === 0) return
    after = upTo
    if (events < MOST_EVENTS / 4) width *= events === 0 ? 8n : 2n
  }
}

/** A condition for the events of a window. */
export function withinWindow({ after, upTo }: Pick<SeqWindow, 'after' | 'upTo'>): string {
  return `x."seq" > ${after}${upTo === null ? '' : ` AND x."seq" <= ${upTo}`}`
}
