import type { TableShape } from '../../columns/catalog.ts'
import { quoted } from '../sql.ts'
import { hasKey, partNames } from '../tables/keys.ts'
import { nextSeqSql } from '../tables/seq.ts'
import { SQL_TYPES, tableName } from '../tables/shape.ts'
import { COMMIT_PARAMETERS, named } from './commit-parameters.ts'

/**
 * Writes all of a page in one statement. `walk` is null for a refresh. Nothing is written where `fence` has no row: the job belongs to
 * another worker by now, the tables or the schema have changed, or this page is written already. All parts see the rows as they were
 * before.
 */
export function commitSql(shape: TableShape): string {
  const raw = quoted(tableName(shape.name, 'raw'))
  const history = quoted(tableName(shape.name, 'history'))
  const typed = quoted(shape.name)
  const keys = shape.keyColumns.map(quoted)
  const parts = partNames(shape)
  const columns = shape.columns.map(({ name }) => quoted(name))
  const written = ['"_first_seen_at"', '"_changed_at"', ...columns]
  const partValues = parts.map((_, index) => `$${COMMIT_PARAMETERS.length + 1 + index}::text[]`)
  const values = (row: string) =>
    keys
      .map((key, index) => `${row}.k${index}::${SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']} AS ${key}`)
      .join(', ')
  const sameKey = (one: string, other: string) =>
    keys.map((key) => `${one}.${key} = ${other}.${key}`).join(' AND ')
  return named(`
    WITH
      job AS (
        SELECT rows_added AS ever_added
        FROM sync_jobs
        WHERE organization_id = :organization AND collection = :collection AND epoch = :epoch
        FOR NO KEY UPDATE
      ),
      -- Sent again while its first copy still runs, the statement has waited for that one at the job's row. Everything else shows it
      -- the rows as they were before; a row that it locks is checked again as it is now.
      walk_before AS (
        SELECT pages
        FROM job, sync_walks
        WHERE id = :walk AND pages = :ordinal - 1
        FOR NO KEY UPDATE OF sync_walks
      ),
      refresh_before AS (
        SELECT pages
        FROM job, sync_runs
        WHERE :walk IS NULL AND id = :run AND pages = :ordinal - 1
        FOR NO KEY UPDATE OF sync_runs
      ),
      fence AS (
        SELECT ever_added
        FROM job
        WHERE EXISTS (SELECT 1 FROM sync_settings WHERE name = 'version' AND value = :schemaVersion)
          AND EXISTS (SELECT 1 FROM sync_collections WHERE name = :collection AND version = :tablesVersion)
          AND (EXISTS (SELECT 1 FROM walk_before) OR EXISTS (SELECT 1 FROM refresh_before))
      ),
      input AS MATERIALIZED (
        SELECT line.*
        FROM fence, unnest(:texts, :areNew, :changedFields, ${partValues.join(', ')}) AS line (json, is_new, changed_fields, ${parts.join(', ')})
      ),
      -- The last lock: another worker waits for it until this transaction has ended.
      written AS (${nextSeqSql(':collection', ':at', 'FROM fence WHERE cardinality(:texts) > 0')}),
      added AS (
        INSERT INTO ${raw} ("_organization_id", ${keys.join(', ')}, "_json", "_first_seen_at", "_changed_at", "_first_seen_seq", "_changed_seq")
        SELECT :organization, ${values('input')}, input.json, since.at, since.at, written.seq, written.seq
        FROM written
        CROSS JOIN input
        CROSS JOIN LATERAL (
          -- If the clock went back, an item that returns begins when its last version ended.
          SELECT greatest(:at, max(former."_valid_to")) AS at
          FROM ${history} AS former
          WHERE former."_organization_id" = :organization AND ${hasKey(shape, 'former', 'input')}
        ) AS since
        WHERE input.is_new
        RETURNING ${keys.join(', ')}, "_first_seen_at", "_changed_at"
      ),
      kept AS (
        -- No version ends before it began, even if the clock went back.
        INSERT INTO ${history} ("_organization_id", ${keys.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at", "_changed_fields", "_valid_from_seq", "_valid_to_seq")
        SELECT :organization, ${keys.map((key) => `former.${key}`).join(', ')}, former."_json", former."_changed_at", greatest(former."_changed_at", :at), 'changed', former."_first_seen_at", input.changed_fields, former."_changed_seq", written.seq
        FROM written
        CROSS JOIN input
        JOIN ${raw} AS former ON former."_organization_id" = :organization AND ${hasKey(shape, 'former', 'input')}
        WHERE NOT input.is_new AND :keepsHistory
      ),
      changed AS (
        UPDATE ${raw} AS live
        SET "_json" = input.json, "_changed_at" = greatest(live."_changed_at", :at), "_changed_seq" = written.seq
        FROM written
        CROSS JOIN input
        WHERE NOT input.is_new AND live."_organization_id" = :organization AND ${hasKey(shape, 'live', 'input')}
        RETURNING ${keys.map((key) => `live.${key}`).join(', ')}, live."_first_seen_at", live."_changed_at"
      ),
      stored AS (SELECT * FROM added UNION ALL SELECT * FROM changed),
      shown AS (
        INSERT INTO ${typed} ("_organization_id", ${[...keys, ...written].join(', ')})
        SELECT :organization, ${keys.map((key) => `stored.${key}`).join(', ')}, stored."_first_seen_at", stored."_changed_at"${columns.map((column) => `, item.${column}`).join('')}
        FROM stored
        JOIN json_populate_recordset(NULL::${typed}, :typedRows) AS item ON ${sameKey('item', 'stored')}
        ON CONFLICT ("_organization_id", ${keys.join(', ')})
        DO UPDATE SET ${written.map((column) => `${column} = excluded.${column}`).join(', ')}
      ),
      known_rejects AS (
        SELECT fingerprint
        FROM sync_rejects
        WHERE organization_id = :organization AND collection = :collection AND fingerprint = ANY (:rejectIds)
          -- One that only refreshes have met may be a row that lost its key.
          AND (:reader <> 'full' OR only_refreshed = 0)
      ),
      rejected AS (
        INSERT INTO sync_rejects AS known (organization_id, collection, page, reason, json, seen_at, fingerprint, only_refreshed)
        SELECT :organization, :collection, :page, line.reason, line.json, :at, line.id, CASE :reader WHEN 'refresh' THEN 1 ELSE 0 END
        FROM fence, unnest(:rejectIds, :rejectReasons, :rejectTexts) AS line (id, reason, json)
        ON CONFLICT (organization_id, collection, fingerprint) 
        DO UPDATE SET seen_at = excluded.seen_at, only_refreshed = CASE :reader WHEN 'full' THEN 0 ELSE known.only_refreshed END
      ),
      answered AS (
        INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, keys, read_at, why, places)
        SELECT :walk, :ordinal, :pass, :page, :total, :keys, :at, :why, :places FROM fence WHERE :walk IS NOT NULL
      ),
      refreshed AS (
        INSERT INTO sync_refreshed (walk_id, keys)
        SELECT id, :refreshedIds
        FROM fence, sync_walks
        WHERE organization_id = :organization AND collection = :collection AND status = 'open' AND kind = 'full' AND :walk IS NULL
      ),
      counts AS (
        SELECT
          count(*) FILTER (WHERE is_new) AS added,
          count(*) FILTER (WHERE NOT is_new) AS changed,
          cardinality(:rejectIds) - (SELECT count(*) FROM known_rejects) AS rejects
        FROM input
      ),
      walked AS (
        UPDATE sync_walks
        SET
          pages = pages + 1,
          rows_seen = rows_seen + :newToWalk,
          new_rejects = new_rejects + counts.rejects,
          total = coalesce(:total, total),
          next_page = :nextPage,
          passes = :passes,
          account = :account,
          updated_at = :at
        FROM fence, counts
        WHERE id = :walk
      ),
      counted AS (
        UPDATE sync_runs
        SET
          pages = pages + 1,
          rows_seen = rows_seen + :items,
          rows_added = rows_added + counts.added,
          rows_changed = rows_changed + counts.changed,
          brief = CASE WHEN counts.added + counts.changed > 0 THEN 0 ELSE brief END,
          requests = :requests,
          retries = :retries,
          rate_limit_hits = :rateLimitHits,
          rate_limit_wait_ms = :rateLimitWaitMs
        FROM fence, counts
        WHERE id = :run
      ),
      seen_again AS (
        DELETE FROM sync_missing
        USING fence
        WHERE organization_id = :organization AND collection = :collection AND key = ANY (:ids)
        RETURNING state
      ),
      noted AS (
        UPDATE sync_jobs
        SET
          rows = rows + counts.added,
          rows_added = sync_jobs.rows_added + counts.added,
          refresh = coalesce(:refresh, refresh),
          fresh_as_of = CASE WHEN :refresh IS NULL THEN fresh_as_of ELSE :freshAsOf END,
          newest = CASE WHEN :refresh IS NULL THEN newest ELSE :newest END,
          removals_held = removals_held - (SELECT count(*) FROM seen_again WHERE state = 'held'),
          scope_mixed = CASE WHEN scope_mixed = 1 OR scope_path <> :path OR scope_filters <> :filters THEN 1 ELSE 0 END,
          scope_path = coalesce(scope_path, :path),
          scope_filters = coalesce(scope_filters, :filters)
        FROM fence, counts
        WHERE organization_id = :organization AND collection = :collection
          AND (
            counts.added <> 0
            OR :refresh IS NOT NULL
            OR scope_path IS NULL
            OR (scope_mixed = 0 AND (scope_path <> :path OR scope_filters <> :filters))
            OR (SELECT count(*) FROM seen_again) > 0
          )
      )
    SELECT counts.rejects, fence.ever_added + counts.added AS "rowsAdded" FROM fence, counts
  `)
}
