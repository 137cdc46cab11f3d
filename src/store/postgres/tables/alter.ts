import { JobError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { TABLE_KINDS, tableName } from '../../columns/catalog.ts'
import type { ColumnChange } from '../../columns/column.ts'
import { selectChanges } from '../../core/changes-view.ts'
import { addColumnSql } from '../../core/declarations.ts'
import type { Alteration } from '../../core/fit.ts'
import { all, exec, one, quoted, type Rule, SQL_TYPES } from '../../core/sql.ts'
import { POSTGRES } from '../driver.ts'
import { dependentIn, isRefusal } from '../server/errors.ts'
import { ELEMENTS } from './views.ts'

/** Runs in a transaction. */
export const ALTERATION: Alteration = {
  dialect: POSTGRES,
  *alterTables({ name }, changes) {
    const columns = changes.flatMap(({ kind, column }) =>
      kind === 'type' && column.role !== 'key' ? [column] : [],
    )
    if (columns.length > 0) {
      const names = columns.map((column) => column.name)
      const obstacle = yield* changingTypes(tablesOf(name), names, [alterSql(name, columns)])
      if (obstacle !== null) return { columns: names, obstacle }
    }
    const added = changes.filter(({ kind, column }) => kind === 'add' && column.role !== 'key')
    yield* exec(added.flatMap(({ column }) => addColumnSql(POSTGRES, name, column)))
    yield* changeKeys(name, changes)
    return null
  },
  furtherViews: [],
  makeView,
  elements: ELEMENTS,
  changes: (shape) => selectChanges(POSTGRES, shape),
  tried,
}

/** Where only columns are added, leaves all that depends on the view as it is; otherwise makes the views of users that read it again, too. */
function* makeView(view: string, select: string, comments: readonly string[]): Rule<void> {
  const name = quoted(view)
  const found = yield* one<{ options: string }>(
    "SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS options FROM pg_class WHERE oid = to_regclass(:name::text)",
    { name },
  )
  const inPlace = `CREATE OR REPLACE VIEW ${name}${found?.options ?? ''} AS\n${select}`
  if ((yield* tried(() => exec([inPlace, ...comments]))) === null) return
  const anew = [`DROP VIEW IF EXISTS ${name}`, `CREATE VIEW ${name} AS\n${select}`, ...comments]
  yield* withoutDependents([view], exec(anew))
}

function tablesOf(collection: string): string[] {
  return TABLE_KINDS.map((kind) => tableName(collection, kind))
}

/** All three tables have the key columns, made as INTEGER before their type was known. A key has no column beside it for what does not fit. */
function* changeKeys(collection: string, changes: readonly ColumnChange[]): Rule<void> {
  const keys = changes.map(({ column }) => column).filter(({ role }) => role === 'key')
  if (keys.length === 0) return
  const statements: string[] = []
  for (const table of tablesOf(collection)) {
    const types = yield* POSTGRES.columnTypes(table)
    const toAlter = keys.filter(({ name, type }) => types.get(name) !== SQL_TYPES[type])
    if (toAlter.length > 0) statements.push(alterSql(table, toAlter))
  }
  if (statements.length === 0) return
  const names = keys.map(({ name }) => name)
  const obstacle = yield* changingTypes(tablesOf(collection), names, statements)
  if (obstacle !== null) throw new DependentError(obstacle)
}

function alterSql(table: string, columns: readonly ColumnChange['column'][]): string {
  const changes = columns.map(
    ({ name, type }) =>
      `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
  )
  return `ALTER TABLE ${quoted(table)} ${changes.join(', ')}`
}

/** A view that reads a table, or one of the tables itself where that is a view; with what is needed to make it again. */
interface View {
  name: string
  kind: string
  /** 0: it is one of the tables itself. */
  depth: number
  definition: string
  /** `(security_invoker=true)`; null for none. */
  options: string | null
  owner: string
  mayDrop: boolean
  /** Statements: comments and grants, of columns too. */
  comments: string[] | null
  grants: string[] | null
}

/** Something depends on a table or view that has to change, and this role cannot make it again unchanged. */
class DependentError extends JobError {
  /** In words of PostgreSQL: `policy mine on table orders`. */
  readonly object: string

  constructor(object: string) {
    super(
      'DATABASE',
      `the tables of this list have to change, and ${printable(object)} depends on them, and this role cannot make it again unchanged: ` +
        'drop it, sync, and make it again',
    )
    this.object = object
  }
}

/** Where the server does not say which one it is. */
const UNNAMED = 'something else in the database'

/** Runs a rule in a transaction. Where the server refuses it, undoes it and returns what is in the way. */
function* tried(begin: () => Rule<void>): Rule<string | null> {
  yield* exec(['SAVEPOINT tried'])
  try {
    yield* begin()
  } catch (error) {
    if (!(error instanceof DependentError) && !isRefusal(error)) throw error
    yield* exec(['ROLLBACK TO SAVEPOINT tried', 'RELEASE SAVEPOINT tried'])
    return error instanceof DependentError ? error.object : (dependentIn(error) ?? UNNAMED)
  }
  yield* exec(['RELEASE SAVEPOINT tried'])
  return null
}

/** Throws DependentError, with the view's name, where the server refuses the task. */
function* naming(view: string, task: Rule<void>): Rule<void> {
  try {
    yield* task
  } catch (error) {
    throw isRefusal(error) ? new DependentError(view) : error
  }
}

/**
 * Runs `change` without the views that read these tables: PostgreSQL changes no type of a column that a view reads. They are
 * made again afterwards as they were, with options, owner, comments and grants; so are the rights of a table that is a view
 * itself, which `change` makes again. Call it in a transaction. Throws DependentError.
 */
function* withoutDependents(tables: readonly string[], change: Rule<void>): Rule<void> {
  const found = yield* all<View>(VIEWS, listOf(tables))
  const views = found.filter(({ depth }) => depth > 0)
  const inTheWay = yield* firstInTheWay(views, tables)
  if (inTheWay !== null) throw new DependentError(inTheWay)
  for (const { name } of views.toReversed()) yield* naming(name, exec([`DROP VIEW IF EXISTS ${name}`]))
  yield* change
  for (const view of found) yield* naming(view.name, remake(view))
}

function listOf(tables: readonly string[]): { tables: string } {
  return { tables: JSON.stringify(tables.map(quoted)) }
}

function* remake(view: View): Rule<void> {
  const { name, depth, options, definition } = view
  if (depth > 0) yield* exec([`CREATE VIEW ${name}${options ? ` WITH ${options}` : ''} AS ${definition}`])
  yield* restoreRights(view)
}

/** The rights are those that it had: a new view has those of ALTER DEFAULT PRIVILEGES, which may have been revoked from it. */
function* restoreRights({ name, options, depth, owner, comments, grants }: View): Rule<void> {
  if (depth === 0 && options) yield* exec([`ALTER VIEW ${name} SET ${options}`])
  yield* exec([`ALTER VIEW ${name} OWNER TO ${quoted(owner)}`])
  const given = yield* all<{ revoke: string }>(GIVEN_BY_DEFAULT, { name })
  yield* exec([...given.map(({ revoke }) => revoke), ...(grants ?? []), ...(comments ?? [])])
}

/** Runs statements that change the types of columns. If something that depends on them cannot be made again unchanged, undoes all and returns it. */
function* changingTypes(
  tables: readonly string[],
  columns: readonly string[],
  statements: readonly string[],
): Rule<string | null> {
  const used = yield* one<{ name: string }>(USES_OF_COLUMNS, {
    ...listOf(tables),
    columns: JSON.stringify(columns),
  })
  return used?.name ?? (yield* tried(() => withoutDependents(tables, exec(statements))))
}

function* firstInTheWay(views: readonly View[], tables: readonly string[]): Rule<string | null> {
  const fixed = views.find(({ kind, mayDrop }) => kind !== 'v' || !mayDrop)
  if (fixed) return fixed.name
  const used = views.length === 0 ? null : yield* one<{ name: string }>(USES_OF_VIEWS, listOf(tables))
  return used?.name ?? null
}

/** From the tables outwards, to the views that read them. */
const FOUND = `
  WITH RECURSIVE reading (oid, depth) AS (
    SELECT to_regclass(name)::oid, 0 FROM json_array_elements_text(:tables::json) AS name
    UNION
    SELECT rule.ev_class, reading.depth + 1
    FROM reading
    JOIN pg_depend AS dependency
      ON dependency.refobjid = reading.oid AND dependency.refclassid = 'pg_class'::regclass AND dependency.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS rule ON rule.oid = dependency.objid AND rule.ev_class <> reading.oid
    WHERE reading.depth < 50
  ),
  found AS (SELECT oid, max(depth) AS depth FROM reading GROUP BY oid)
`

const GRANTEE = "CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END"
const GRANTABLE = "CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END"

/** A view stands after all that it reads. */
const VIEWS = `
  ${FOUND}
  SELECT
    relation.oid::regclass::text AS name,
    relation.relkind AS kind,
    found.depth,
    pg_get_viewdef(relation.oid) AS definition,
    '(' || array_to_string(relation.reloptions, ', ') || ')' AS options,
    pg_get_userbyid(relation.relowner) AS owner,
    pg_has_role(relation.relowner, 'USAGE') AS "mayDrop",
    (
      SELECT array_agg(
        CASE objsubid
          WHEN 0 THEN format('COMMENT ON VIEW %s IS %L', relation.oid::regclass, description)
          ELSE format('COMMENT ON COLUMN %s.%I IS %L', relation.oid::regclass, attname, description)
        END
      )
      FROM pg_description
      LEFT JOIN pg_attribute ON attrelid = objoid AND attnum = objsubid
      WHERE objoid = relation.oid AND classoid = 'pg_class'::regclass
    ) AS comments,
    (
      SELECT array_agg(statement)
      FROM (
        SELECT format('GRANT %s ON %s TO %s%s', acl.privilege_type, relation.oid::regclass, ${GRANTEE}, ${GRANTABLE})
        FROM aclexplode(relation.relacl) AS acl
        UNION ALL
        SELECT format('GRANT %s (%I) ON %s TO %s%s', acl.privilege_type, attname, relation.oid::regclass, ${GRANTEE}, ${GRANTABLE})
        FROM pg_attribute, aclexplode(attacl) AS acl
        WHERE attrelid = relation.oid AND NOT attisdropped
      ) AS given (statement)
    ) AS grants
  FROM found
  JOIN pg_class AS relation USING (oid)
  WHERE found.depth > 0 OR relation.relkind = 'v'
  ORDER BY found.depth, relation.oid
`

/** What depends on one of the views, apart from the views that read it: a trigger, a rule, a function, a default. */
const USES_OF_VIEWS = `
  ${FOUND}
  SELECT pg_describe_object(dependency.classid, dependency.objid, dependency.objsubid) AS name
  FROM found
  JOIN pg_class AS relation USING (oid)
  JOIN pg_depend AS dependency
    ON (dependency.refclassid = 'pg_class'::regclass AND dependency.refobjid = relation.oid)
    OR (dependency.refclassid = 'pg_type'::regclass AND dependency.refobjid = relation.reltype)
  WHERE found.depth > 0 AND dependency.deptype <> 'i' AND NOT EXISTS (
    SELECT 1 FROM pg_rewrite WHERE dependency.classid = 'pg_rewrite'::regclass AND oid = dependency.objid AND rulename = '_RETURN'
  )
  ORDER BY 1
  LIMIT 1
`

/** What refers to one of the columns, so that its type cannot change: a policy, a trigger, a function, a publication. */
const USES_OF_COLUMNS = `
  SELECT pg_describe_object(dependency.classid, dependency.objid, dependency.objsubid) AS name
  FROM json_array_elements_text(:tables::json) AS one (name)
  JOIN pg_attribute AS attribute ON attribute.attrelid = to_regclass(one.name) AND attribute.attname IN (SELECT json_array_elements_text(:columns::json))
  JOIN pg_depend AS dependency
    ON dependency.refclassid = 'pg_class'::regclass
    AND dependency.refobjid = attribute.attrelid
    AND dependency.refobjsubid = attribute.attnum
  WHERE dependency.classid IN (
    'pg_policy'::regclass, 'pg_trigger'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass, 'pg_attrdef'::regclass
  )
  ORDER BY 1
  LIMIT 1
`

const GIVEN_BY_DEFAULT = `
  SELECT DISTINCT format('REVOKE ALL ON %s FROM %s', relation.oid::regclass, ${GRANTEE}) AS revoke
  FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
  WHERE relation.oid = to_regclass(:name::text) AND acl.grantee <> relation.relowner
`
