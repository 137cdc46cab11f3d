import type { z } from 'zod'
import type { KeyPath } from './config-error.ts'
import { explainUnknownKey } from './known-keys.ts'
import type { Report } from './problems.ts'
import { rawAt } from './raw-value.ts'

type Issue = z.core.$ZodIssue

/** Reports what the schema found; `raw` is the value that it looked at. */
export function reportIssues(issues: readonly Issue[], raw: unknown, report: Report): void {
  for (const issue of issues.flatMap(flattenUnion)) {
    const path = keyPath(issue.path)
    if (issue.code === 'unrecognized_keys') reportUnknown(path, issue.keys, report)
    else report(path, describe(issue.message, rawAt(raw, path)), isForbiddenKey(issue) ? 'key' : 'value')
  }
}

function describe(message: string, value: unknown): string {
  if (value === undefined) return `is missing. It ${message}`
  return value === null ? `has no value. It ${message}` : message
}

function isForbiddenKey(issue: Issue): boolean {
  return issue.code === 'invalid_type' && issue.expected === 'never'
}

function reportUnknown(parent: KeyPath, keys: readonly string[], report: Report): void {
  for (const key of keys) {
    report([...parent, key], explainUnknownKey(parent, key), 'key')
  }
}

/**
 * Of a choice between forms, the problems inside the form that was chosen: a mapping or list whose contents are wrong.
 * Where no form fits at all, the choice's own message is the better one.
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
