/** Whole numbers are bigint: none is rounded. */
export type Value = string | number | bigint | null | Uint8Array

export interface Rows {
  columns: string[]
  rows: Iterable<Value[]>
}

/**
 * Translates errors that come after the first row, such as damage, or malformed JSON in a function. Begins
 * with the first row that is read: a connection with an unfinished statement cannot be closed.
 */
export function* stepping<T>(begin: () => Iterable<T>, meaning: (error: unknown) => unknown): Iterable<T> {
  try {
    yield* begin()
  } catch (error) {
    throw meaning(error)
  }
}

/** `SELECT a.id, b.id` gives two columns one name; an object needs two. */
export function distinctNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    let candidate = name
    for (let count = 2; taken.has(candidate); count++) candidate = `${name}_${count}`
    taken.add(candidate)
    return candidate
  })
}
