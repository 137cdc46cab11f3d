/** The parameters of `commitSql`, in this order, and their types; the columns of the keys follow. */
const TYPES = {
  organization: 'text',
  collection: 'text',
  epoch: 'bigint',
  schemaVersion: 'text',
  tablesVersion: 'bigint',
  walk: 'bigint',
  run: 'bigint',
  at: 'timestamptz',
  ordinal: 'bigint',
  pass: 'bigint',
  page: 'bigint',
  total: 'bigint',
  why: 'text',
  keys: 'text',
  places: 'text',
  ids: 'text[]',
  refreshedIds: 'text',
  reader: 'text',
  refresh: 'text',
  freshAsOf: 'timestamptz',
  newest: 'text',
  items: 'bigint',
  newToWalk: 'bigint',
  nextPage: 'bigint',
  passes: 'bigint',
  account: 'text',
  requests: 'bigint',
  retries: 'bigint',
  rateLimitHits: 'bigint',
  rateLimitWaitMs: 'bigint',
  path: 'text',
  filters: 'text',
  keepsHistory: 'boolean',
  rejectIds: 'text[]',
  rejectReasons: 'text[]',
  rejectTexts: 'text[]',
  typedRows: 'json',
  texts: 'text[]',
  areNew: 'boolean[]',
  changedFields: 'text[]',
}

export type CommitValues = Record<keyof typeof TYPES, unknown>

export const COMMIT_PARAMETERS = Object.keys(TYPES) as readonly (keyof CommitValues)[]

/** With the numbers that PostgreSQL wants instead of the names, each with its type. Names of columns stay as they are. */
export function named(sql: string): string {
  return sql.replace(
    /"(?:[^"]|"")*"|(?<![:\w]):([a-z]\w*)/gi,
    (text, name: keyof CommitValues | undefined) =>
      name === undefined ? text : `$${COMMIT_PARAMETERS.indexOf(name) + 1}::${TYPES[name]}`,
  )
}
