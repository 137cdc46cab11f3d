/** Where a value is in the configuration file: keys of mappings and indexes of lists, from the top. */
export type KeyPath = readonly (string | number)[]

/** One mistake in the file. `line` and `column` count from 1; null for the file as a whole. */
export interface Problem {
  key: string
  line: number | null
  column: number | null
  /** What is wrong, then what to do. Never holds a value of the environment, nor one that may be a token. */
  message: string
}

/** All problems of one configuration file, in the order of its lines. Ends a command with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]

  constructor(file: string, problems: readonly Problem[]) {
    const unique = new Map(problems.map((problem) => [JSON.stringify(problem), problem]))
    const sorted = [...unique.values()].toSorted(
      (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
    )
    super(
      sorted
        .map(({ key, line, column, message }) => {
          const place = line === null ? file : `${file}:${line}:${column}`
          return `${place}  ${key === '' ? message : `${key}: ${message}`}`
        })
        .join('\n'),
    )
    this.problems = sorted
  }
}

/**
 * A key path as people write it: `organizations[0].token`; a name that is not a plain word is quoted, and cut after a
 * colon: where `token:abc` lacks its space, the rest is the token.
 */
export function formatKey(path: KeyPath): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`
      if (!/^[\w-]+$/.test(part)) return `[${JSON.stringify(part.replace(/:.*$/s, ':...'))}]`
      return index === 0 ? part : `.${part}`
    })
    .join('')
}

const plain = (text: string) => text.toLowerCase().replaceAll(/[_-]/g, '')

/** Returns the known word that was probably meant, or null. Case, `_` and `-` do not count, and about one letter in three may be wrong. */
export function nearest(word: string, known: readonly string[]): string | null {
  const [best] = known
    .map((candidate) => ({ candidate, distance: editDistance(plain(word), plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance)
  return best && best.distance <= Math.ceil(plain(best.candidate).length / 3) ? best.candidate : null
}

/** How many letters to insert, remove or replace to turn one word into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [row, letter] of Array.from(from).entries()) {
    const current = [row + 1]
    for (let column = 0; column < to.length; column++) {
      const replaced = (last[column] ?? 0) + (letter === to[column] ? 0 : 1)
      current.push(Math.min((last[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1, replaced))
    }
    last = current
  }
  return last.at(-1) ?? 0
}
