import type { Sql } from './sql.ts'

/**
 * The owner of a schema, if that is neither this role nor one that it belongs to; else null, also where there is no such schema. Its owner can
 * put functions and triggers of his own there, which then run with this role's rights: a superuser is no exception.
 */
export async function strangeOwner(sql: Pick<Sql, 'rows'>, schema: string): Promise<string | null> {
  const [found] = await sql.rows<{ owner: string }>(STRANGE_OWNER, [schema])
  return found?.owner ?? null
}

const STRANGE_OWNER = `
  WITH RECURSIVE own (oid) AS (
    SELECT oid FROM pg_roles WHERE rolname = current_user
    UNION
    SELECT roleid FROM pg_auth_members JOIN own ON member = own.oid
  )
  SELECT pg_get_userbyid(nspowner) AS owner
  FROM pg_namespace
  WHERE nspname = $1
    AND nspowner NOT IN (SELECT oid FROM own)
    AND NOT (
      nspowner = 'pg_database_owner'::regrole
      AND EXISTS (SELECT 1 FROM pg_database WHERE datname = current_database() AND datdba IN (SELECT oid FROM own))
    )
`
