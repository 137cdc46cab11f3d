/** A name as SQLite reads it whatever it holds. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
