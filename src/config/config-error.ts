/** Where something stands in the configuration file: keys of mappings and indexes of lists, from the top. */
export type KeyPath = readonly (string | number)[]

/** One thing to put right in the file. `line` and `column` count from 1; null where the file as a whole is meant. */
export interface Problem {
  key: string
  line: number | null
  column: number | null
  /** What is wrong, and after it what to do, in whole sentences. Never holds a value of the file or the environment. */
  message: string
}

/** All problems of one configuration file, in the order of its lines. Ends a command with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]

  constructor(file: string, problems: readonly Problem[]) {
    const sorted = withoutRepeats(problems).toSorted(byPlace)
    super(sorted.map((problem) => formatProblem(file, problem)).join('\n'))
    this.problems = sorted
  }
}

/**
 * A key path as people write it: `organizations[0].token`; a name that is no plain word stands in quotes. Of a key
 * with a colon in it the rest is left out: where `token:abc` lacks its space, it is the token.
 */
export function formatKey(path: KeyPath): string {
  return path.map((part, index) => formatPart(part, index === 0)).join('')
}

function formatPart(part: string | number, isFirst: boolean): string {
  if (typeof part === 'number') return `[${part}]`
  if (!/^[\w-]+$/.test(part)) return `[${JSON.stringify(part.replace(/:.*$/s, ':...'))}]`
  return isFirst ? part : `.${part}`
}

function formatProblem(file: string, { key, line, column, message }: Problem): string {
  const place = line === null ? file : `${file}:${line}:${column}`
  const what = key === '' ? message : `${key}: ${message}`
  return `${place}  ${what}`
}

function byPlace(a: Problem, b: Problem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)
}

function withoutRepeats(problems: readonly Problem[]): Problem[] {
  const seen = new Map<string, Problem>()
  for (const problem of problems) {
    const identity = JSON.stringify([problem.key, problem.line, problem.column, problem.message])
    if (!seen.has(identity)) seen.set(identity, problem)
  }
  return [...seen.values()]
}
