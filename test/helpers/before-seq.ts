import type { Connection } from '../../src/store/sqlite/driver.ts'

/** Makes the tables of orders as they were before `orders_changes` had the column `seq`. */
export function beforeSeq(connection: Connection): void {
  const indexes = connection
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND name GLOB 'orders_*_seq_*'")
    .pluck()
    .all() as string[]
  connection.exec('DROP VIEW IF EXISTS orders_changes')
  for (const index of indexes) connection.exec(`DROP INDEX "${index}"`)
  connection.exec(`
    ALTER TABLE orders_raw DROP COLUMN _first_seen_seq;
    ALTER TABLE orders_raw DROP COLUMN _changed_seq;
    ALTER TABLE orders_history DROP COLUMN _valid_from_seq;
    ALTER TABLE orders_history DROP COLUMN _valid_to_seq;
  `)
}
