import { JobError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { quoted, type Sql } from '../sql.ts'

/** A view that reads a table, with what is needed to make it again. */
interface Dependent {
  name: string
  kind: string
  definition: string
  owner: string
  mayDrop: boolean
  comment: string | null
  grants: string[] | null
}

/**
 * Runs `change` without the views that read these tables: PostgreSQL changes no type of a column that a view reads. They are
 * made again afterwards as they were, with owner, comment and grants. Throws JobError for one that this role may not drop.
 */
export async function withoutDependents(
  sql: Sql,
  tables: readonly string[],
  change: () => Promise<void>,
): Promise<void> {
  const views = await sql.rows<Dependent>(DEPENDENTS, [tables.map(quoted)])
  const inTheWay = views.find(({ kind, mayDrop }) => kind !== 'v' || !mayDrop)
  if (inTheWay) {
    throw new JobError(
      'DATABASE',
      `a column has to get another type, and ${printable(inTheWay.name)} reads it, which this role cannot make again: drop it, ` +
        'sync, and make it again',
    )
  }
  for (const { name } of views.toReversed()) await sql.exec(`DROP VIEW IF EXISTS ${name}`)
  await change()
  for (const { name, definition, comment, grants, owner } of views) {
    await sql.exec(`CREATE VIEW ${name} AS ${definition}`)
    await sql.exec(`ALTER VIEW ${name} OWNER TO ${quoted(owner)}`)
    for (const grant of grants ?? []) await sql.exec(grant)
    if (comment !== null) await sql.exec(comment)
  }
}

/** From the tables outwards: a view stands after all that it reads. */
const DEPENDENTS = `
  WITH RECURSIVE reading (oid, depth) AS (
    SELECT to_regclass(name)::oid, 0 FROM unnest($1::text[]) AS name
    UNION
    SELECT rule.ev_class, reading.depth + 1
    FROM reading
    JOIN pg_depend AS dependency
      ON dependency.refobjid = reading.oid AND dependency.refclassid = 'pg_class'::regclass AND dependency.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS rule ON rule.oid = dependency.objid AND rule.ev_class <> reading.oid
    WHERE reading.depth < 50
  )
  SELECT
    format('%I.%I', namespace.nspname, relation.relname) AS name,
    relation.relkind AS kind,
    pg_get_viewdef(relation.oid) AS definition,
    pg_get_userbyid(relation.relowner) AS owner,
    pg_has_role(relation.relowner, 'USAGE') AS "mayDrop",
    (
      SELECT format('COMMENT ON VIEW %I.%I IS %L', namespace.nspname, relation.relname, description)
      FROM pg_description
      WHERE objoid = relation.oid AND classoid = 'pg_class'::regclass AND objsubid = 0
    ) AS comment,
    (
      SELECT array_agg(format(
        'GRANT %s ON %I.%I TO %s', acl.privilege_type, namespace.nspname, relation.relname,
        CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
      ))
      FROM aclexplode(relation.relacl) AS acl
    ) AS grants
  FROM (SELECT oid, max(depth) AS depth FROM reading GROUP BY oid) AS found
  JOIN pg_class AS relation USING (oid)
  JOIN pg_namespace AS namespace ON namespace.oid = relation.relnamespace
  WHERE found.depth > 0
  ORDER BY found.depth, relation.oid
`
