import type { Connection } from '../../src/store/sqlite/driver.ts'

/** Makes the tables as they were before the columns of views of arrays followed the rules of those of tables. */
export function beforeElements(connection: Connection): void {
  connection.exec(`
    DROP VIEW sync_help;
    CREATE TABLE former (
      view TEXT NOT NULL, array_column TEXT NOT NULL, "column" TEXT NOT NULL, path TEXT NOT NULL, type TEXT NOT NULL,
      holds TEXT NOT NULL, PRIMARY KEY (view, "column")
    ) STRICT;
    INSERT INTO former
    SELECT
      view, array_column, "column", path, type,
      CASE type WHEN 'TEXT' THEN 'text' WHEN 'REAL' THEN 'real' ELSE iif(wide = 1, 'boolean', 'integer') END
    FROM sync_view_columns;
    DROP TABLE sync_view_columns;
    ALTER TABLE sync_column_counts DROP COLUMN objects;
    UPDATE sync_known_columns SET wide = 0;
  `)
  connection.pragma('legacy_alter_table = ON')
  connection.exec('ALTER TABLE former RENAME TO sync_view_columns')
  connection.pragma('legacy_alter_table = OFF')
}

/** The same on a server, as SQL. */
export const BEFORE_ELEMENTS_ON_SERVER = `
  ALTER TABLE sync_column_counts DROP COLUMN objects;
  ALTER TABLE sync_view_columns
    DROP COLUMN role, DROP COLUMN wide, DROP COLUMN first_seen_at, DROP COLUMN last_changed_at, ADD COLUMN holds text;
  UPDATE sync_view_columns
  SET holds = CASE "column" WHEN 'b' THEN 'boolean' WHEN 't' THEN 'text' ELSE 'integer' END;
  ALTER TABLE sync_view_columns ALTER COLUMN holds SET NOT NULL;
`
