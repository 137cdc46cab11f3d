import type { z } from 'zod'
import type { KeyPath } from './config-error.ts'
import { keyPath } from './issues.ts'
import { rawAt, withRaw } from './raw-value.ts'

type Issue = z.core.$ZodIssue

/**
 * A variable holds text, but where the schema found that a number or a truth value belongs, a text that spells one
 * is taken for it. Only there: a token may consist of digits, and a name may be "true".
 */
export function coerceVariables(
  raw: unknown,
  issues: readonly Issue[],
  fromVariable: (path: KeyPath) => boolean,
): unknown {
  let coerced = raw
  for (const { path, expected } of issues.flatMap((issue) => expectations(issue, []))) {
    const text = rawAt(coerced, path)
    const value = typeof text === 'string' && fromVariable(path) ? spelled(text, expected) : null
    if (value !== null) coerced = withRaw(coerced, path, value)
  }
  return coerced
}

interface Expectation {
  path: KeyPath
  expected: string
}

function expectations(issue: Issue, parent: KeyPath): Expectation[] {
  const path = [...parent, ...keyPath(issue.path)]
  if (issue.code === 'invalid_union') return issue.errors.flat().flatMap((inner) => expectations(inner, path))
  return issue.code === 'invalid_type' ? [{ path, expected: issue.expected }] : []
}

/** As YAML reads an unquoted word. */
function spelled(text: string, expected: string): number | boolean | null {
  if (expected === 'boolean') return text === 'true' ? true : text === 'false' ? false : null
  const isNumber = expected === 'number' && /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(text)
  return isNumber ? Number(text) : null
}
