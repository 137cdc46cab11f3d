// Names that a field of JSON can have, and that mean something to a database or to ourselves.

/** The keywords of SQLite 3.54, and those of PostgreSQL 18 that cannot be names of columns or of functions without quotes. */
const KEYWORDS =
  'abort action add after all alter always analyse analyze and any array as asc asymmetric attach autoincrement before begin between both by ' +
  'cascade case cast check collate collation column commit concurrently conflict constraint create cross current current_catalog current_date ' +
  'current_role current_schema current_time current_timestamp current_user database default deferrable deferred delete desc detach distinct do ' +
  'drop each else end escape except exclude exclusive exists explain fail fetch filter first following for foreign freeze from full generated ' +
  'glob grant group groups having if ignore ilike immediate in index indexed initially inner insert instead intersect into is isnull join key ' +
  'last lateral leading left like limit localtime localtimestamp match materialized natural no not nothing notnull null nulls of offset on only ' +
  'or order others outer over overlaps partition placing plan pragma preceding primary query raise range recursive references regexp reindex ' +
  'release rename replace restrict returning right rollback row rows savepoint select session_user set similar some symmetric system_user table ' +
  'tablesample temp temporary then ties to trailing transaction trigger unbounded union unique update user using vacuum values variadic verbose ' +
  'view virtual when where window with within without'

/** Other names that have a meaning somewhere. */
const MEANING =
  'true TRUE false False rowid _rowid_ oid ROWID ctid xmin tableoid _json _organization_id _changed_at _index _parent_id _valid_to line ' +
  'lines seq value type fullkey __proto__ constructor toString'

/** Characters that mean something, or nothing. */
const ODD =
  '" \' ` a.b a[0] $ $.a #-1 [ ] {} \\ / -- ; /* :at ?1 @x % _ __ a__b A__B x__text 0 007 -1 é É \u{1f600} \u202e'

/** Blanks, PHP's names of hidden fields, names that are another up to the NUL, and long ones. */
const OTHERS = ['', ' ', '\n\t', '\0', '\0*\0sku', '\0*\0price', 'nul\0more', 'nul', 'n'.repeat(300)]

/** Each is told from all others by both databases. */
export const NAMES: readonly string[] = [
  ...[KEYWORDS, MEANING, ODD].flatMap((names) => names.split(' ')),
  ...OTHERS,
  `${'n'.repeat(300)}m`,
]
