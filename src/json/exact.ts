import { hasEscapedName, readEscapedNames } from './escaped-names.ts'
import { parseRawNumbers } from './raw-numbers.ts'
import { findInexactNumbers, isInexact } from './scan.ts'
import type { JsonValue, RawNumber } from './value.ts'

/** JSON.parse that keeps every number's text and every field's name. Throws a SyntaxError where JSON.parse does. */
export function parseExact(text: string): JsonValue {
  return parseExactAt(text, findInexactNumbers(text))
}

/** The same for a text whose `findInexactNumbers` are known. In invalid JSON these need not be numbers. */
export function parseExactAt(text: string, inexact: readonly number[]): JsonValue {
  const value: JsonValue = inexact.length === 0 ? JSON.parse(text) : parseNumbers(text, inexact)
  return hasEscapedName(text) ? readEscapedNames(text, exactNumber) : value
}

function parseNumbers(text: string, inexact: readonly number[]): JsonValue {
  return parseRawNumbers(text, inexact) ?? (JSON.parse(text, keepText) as JsonValue)
}

// TypeScript's library does not know the context, so it is optional here. It lacks the source where V8 confused two
// names (see `hasEscapedName`).
function keepText(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? exactNumber(context.source) : value
}

function exactNumber(source: string): number | RawNumber {
  return isInexact(source, 0, source.length) ? JSON.rawJSON(source) : Number(source)
}
