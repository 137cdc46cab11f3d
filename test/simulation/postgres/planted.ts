import type { PlantedBug } from '../planted.ts'

/** Mistakes of what workers on one server share, each with a seed that finds it. */
export const SERVER_BUGS: readonly PlantedBug[] = [
  {
    name: 'each worker has a budget of its own',
    seed: 1_000_000,
    complaint: /is one of more than \d+ in 60 seconds$/,
    statement(statement, { name }) {
      if (!/\bgate\.scope = \$1/.test(statement.sql)) return statement
      const [scope, ...values] = statement.values
      return { ...statement, values: [`${String(scope)} of ${name}`, ...values] }
    },
  },
  {
    name: 'an owner that was overtaken still writes',
    seed: 1,
    complaint: /of a job that it has lost$/,
    statement: ({ sql, values }) => ({ sql: sql.replace(/\bepoch = (?=[$])/, 'epoch >= '), values }),
  },
  {
    name: 'a transaction is repeated though its COMMIT was written',
    seed: 1_000_117,
    complaint: /^two walks of sync are open/,
    statement: ({ sql, values }) => ({
      sql: sql.replace('pg_xact_status($1::text::xid8)', "substr('aborted', 1, 7 + 0 * length($1::text))"),
      values,
    }),
  },
]
