/** A name as SQLite reads it whatever it holds. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/**
 * A parameter for conditions of statements that run once a page or more. SQLite looks at what is bound to a bare `?` when it
 * plans, wherever no unique index settles the plan, and so compiles the statement anew for each value: ten times what the
 * query takes. Behind a CAST it does not look.
 */
export function unplanned(type: 'INTEGER' | 'TEXT', parameter = '?'): string {
  return `CAST(${parameter} AS ${type})`
}
