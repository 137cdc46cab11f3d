/** The parameters of `commitSql`, in this order; the columns of the keys follow. */
export const COMMIT_PARAMETERS = [
  'organization',
  'collection',
  'epoch',
  'schemaVersion',
  'tablesVersion',
  'walk',
  'run',
  'at',
  'ordinal',
  'pass',
  'page',
  'total',
  'why',
  'keys',
  'places',
  'ids',
  'refreshedIds',
  'reader',
  'refresh',
  'freshAsOf',
  'newest',
  'items',
  'newToWalk',
  'nextPage',
  'passes',
  'account',
  'requests',
  'retries',
  'rateLimitHits',
  'rateLimitWaitMs',
  'path',
  'filters',
  'keepsHistory',
  'rejectIds',
  'rejectReasons',
  'rejectTexts',
  'typedRows',
  'texts',
  'areNew',
  'changedFields',
] as const

export type CommitValues = Record<(typeof COMMIT_PARAMETERS)[number], unknown>

const TYPES: Partial<Record<keyof CommitValues, string>> = {
  at: 'timestamptz',
  freshAsOf: 'timestamptz',
  ids: 'text[]',
  keepsHistory: 'boolean',
  rejectIds: 'text[]',
  rejectReasons: 'text[]',
  rejectTexts: 'text[]',
  typedRows: 'json',
  texts: 'text[]',
  areNew: 'boolean[]',
  changedFields: 'text[]',
}

const TEXTS: readonly (keyof CommitValues)[] = [
  'organization',
  'collection',
  'schemaVersion',
  'why',
  'keys',
  'places',
  'account',
  'refreshedIds',
  'reader',
  'refresh',
  'newest',
  'path',
  'filters',
]

/** With the numbers that PostgreSQL wants instead of the names, each with its type. Names of columns stay as they are. */
export function named(sql: string): string {
  return sql.replace(
    /"(?:[^"]|"")*"|(?<![:\w]):([a-z]\w*)/gi,
    (text, name: keyof CommitValues | undefined) => {
      if (name === undefined) return text
      const number = COMMIT_PARAMETERS.indexOf(name) + 1
      return `$${number}::${TYPES[name] ?? (TEXTS.includes(name) ? 'text' : 'bigint')}`
    },
  )
}
