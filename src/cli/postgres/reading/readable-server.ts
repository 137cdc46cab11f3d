import { UsageError } from '../../../errors.ts'
import { openCursor, type StreamedRows } from '../../../store/postgres/read/cursor.ts'
import { describeColumns, summarize } from '../../../store/postgres/read/describe.ts'
import {
  belongsTo,
  collectionsOf,
  findListed,
  type Listed,
  listedNames,
  organizationsOf,
  type Reading,
} from '../../../store/postgres/read/listed.ts'
import { type Statement, withPlaceholders } from '../../../store/postgres/read/placeholders.ts'
import { selectItems, selectRows } from '../../../store/postgres/read/selection.ts'
import { distinctNames, type Value } from '../../../store/sqlite/read/rows.ts'
import type { ReadableMirror } from '../../reading/readable-mirror.ts'
import type { QueryWork } from '../../reading/task.ts'

/** Of a mirror on a PostgreSQL server, in one transaction. */
export function readableServer(sql: Reading): ReadableMirror {
  return {
    async query(work) {
      const { columns, ...rest } = await run(sql, statementOf(work))
      return { columns: distinctNames(columns), ...rest }
    },
    collections: async () => (await collectionsOf(sql)).map(({ collection }) => collection),
    organizations: () => organizationsOf(sql),
    names: () => listedNames(sql),
    find: (name) => findListed(sql, name),
    relatives: async ({ name, collection }) =>
      (await listedNames(sql)).filter((one) => one !== name && belongsTo(collection, one)),
    rows: (listed: Listed, selection) => selectRows(sql, listed, selection),
    items: (listed: Listed, selection) => selectItems(sql, listed, selection),
    describe: (listed: Listed) => describeColumns(sql, listed),
    summary: (collection) => summarize(sql, collection),
  }
}

/** The statement as the server takes it. Throws UsageError if it does not only read, and for parameters that do not match. */
export function statementOf({ sql, parameters }: Pick<QueryWork, 'sql' | 'parameters'>): Statement {
  const values = new Map(parameters.map(([name, value]) => [name.replace(/^[:@$]/, ''), value]))
  const statement = withPlaceholders(sql, values)
  if (ROWS.includes(statement.firstWord) || NO_CURSOR.includes(statement.firstWord)) return statement
  throw new UsageError('query only reads: write one SELECT (or WITH, VALUES, TABLE, EXPLAIN, SHOW)')
}

/** The statement planned instead of run. */
export function explaining(statement: Statement): Statement {
  const isPlan = NO_CURSOR.includes(statement.firstWord)
  return isPlan ? statement : { ...statement, text: `EXPLAIN ${statement.text}` }
}

const ROWS = ['SELECT', 'WITH', 'VALUES', 'TABLE']
const NO_CURSOR = ['EXPLAIN', 'SHOW']

async function run(sql: Reading, { text, values, firstWord }: Statement): Promise<StreamedRows> {
  if (ROWS.includes(firstWord)) return openCursor(sql, text, values)
  const { rows, ...head } = await sql.arrays(text, values)
  return { ...head, batches: onlyOne(rows as Value[][]) }
}

async function* onlyOne<T>(value: T): AsyncIterable<T> {
  yield await Promise.resolve(value)
}
