import type { z } from 'zod'
import { type KeyPath, type Problems, rawAt } from './problems.ts'
import { FileSchema, SECTIONS } from './schema.ts'

type Issue = z.core.$ZodIssue

/** Reports what the schema found in `raw`. */
export function reportIssues(
  issues: readonly Issue[],
  raw: unknown,
  { report, variablesOf }: Pick<Problems, 'report' | 'variablesOf'>,
): void {
  for (const issue of issues.flatMap(flattenUnion)) {
    const path = keyPath(issue.path)
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys)
        report([...path, key], explainUnknownKey(key, issue.message.split(' ')), 'key')
      continue
    }
    // What quotes a value must stay hidden if it comes from a variable.
    const quote = issue.code === 'custom' && variablesOf(path).length === 0 ? issue.params?.quote : undefined
    const message = quote === undefined ? issue.message : issue.message.replace('.', () => ` (${quote}).`)
    report(path, aboutValue(message, rawAt(raw, path)), isForbiddenKey(issue) ? 'key' : 'value')
  }
}

function aboutValue(message: string, value: unknown): string {
  if (value === undefined) return `is missing. It ${message}`
  return value === null ? `has no value. It ${message}` : message
}

function isForbiddenKey(issue: Issue): boolean {
  return issue.code === 'invalid_type' && issue.expected === 'never'
}

/**
 * For a union: the problems of the branch that the value resembles, a mapping or list with wrong contents. If it
 * resembles none, the union's own message is the better one.
 */
function flattenUnion(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const chosen = issue.errors.find((branch) => branch.length > 0 && !branch.some(isOtherForm))
  return chosen
    ? chosen.flatMap((inner) => flattenUnion({ ...inner, path: [...issue.path, ...inner.path] }))
    : [issue]
}

function isOtherForm({ code, path }: Issue): boolean {
  return (
    path.length === 0 && (code === 'invalid_type' || code === 'invalid_value' || code === 'invalid_format')
  )
}

function keyPath(path: readonly PropertyKey[]): KeyPath {
  return path.map((part) => (typeof part === 'number' ? part : String(part)))
}

function explainUnknownKey(key: string, known: readonly string[]): string {
  if (key.includes(':')) return 'is not a known key: its colon needs a space after it. Write "key: value".'
  const meant = nearest(key, known) ?? elsewhere(key)
  if (meant !== null) return `is not a known key. Did you mean ${meant}?`
  return `is not a known key. Known here: ${known.join(', ')}.`
}

/** Where the key belongs, if it is one level too high or too low. */
function elsewhere(key: string): string | null {
  if (Object.hasOwn(FileSchema.shape, key)) return `${key} at the top of the file, without indentation`
  const section = Object.entries(SECTIONS).find(([, { shape }]) => Object.hasOwn(shape, key))
  return section === undefined ? null : `${section[0]}.${key}`
}

/**
 * Returns the known word that was probably meant, or null. Case, `_` and `-` do not count, and about one letter in three
 * may be wrong.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(plain(word), plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const best = ranked[0]
  return best && best.distance <= Math.ceil(plain(best.candidate).length / 3) ? best.candidate : null
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[_-]/g, '')
}

/** How many letters to insert, remove or replace to turn one word into the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [row, letter] of Array.from(from).entries()) {
    const current = [row + 1]
    for (const [column, left = 0] of last.slice(0, -1).entries())
      current.push(
        Math.min(
          (last[column + 1] ?? 0) + 1,
          (current[column] ?? 0) + 1,
          left + (letter === to[column] ? 0 : 1),
        ),
      )
    last = current
  }
  return last.at(-1) ?? 0
}
