/** A name of a megabyte is no column's: every reader of the file would have to take it, and each of our statements. */
const LONGEST = 2000

/**
 * The name of the column for a path: its parts joined with `__`. An empty part becomes `field`, a name that begins with `_`
 * gets the prefix `field` (names with `_` in front are ours), NUL and lone surrogates, which SQLite's text cannot carry, become `_`. Of
 * more than 2,000 characters the first ones are taken.
 * @param isTaken Whether a name is in use, by SQLite's comparison (see `foldName`); then `_2`, `_3` ... is added.
 */
export function columnName(path: readonly string[], isTaken: (name: string) => boolean): string {
  const joined = path.map((part) => (part === '' ? 'field' : part)).join('__')
  const carried = joined.slice(0, LONGEST).replace(/\0|\p{Cs}/gu, '_')
  return freeName(carried.startsWith('_') ? `field${carried}` : carried, isTaken)
}

/** The name itself, or with the first of `_2`, `_3` ... that makes it free. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  if (!isTaken(name)) return name
  let number = 2
  while (isTaken(`${name}_${number}`)) number++
  return `${name}_${number}`
}

/** The same text for names that SQLite compares equal: it ignores the case of ASCII letters, and of no others. */
export function foldName(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
