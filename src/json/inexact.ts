import { BIG_E, DOT, MINUS, NINE, PLUS, QUOTE, SMALL_E, ZERO } from './characters.ts'
import { skipString } from './strings.ts'

/** So many digits come back from JSON.parse as they were, whatever they are. */
const SAFE_LENGTH = 15

/** Fractions below a millionth, which JavaScript writes as 5e-7. */
const WRITTEN_WITH_EXPONENT = '0.000000'

/** Where the numbers begin in a JSON text that a plain JSON.parse changes; in a text that is not valid, what looks like some. */
export function findInexactNumbers(text: string): number[] {
  const starts: number[] = []
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (beginsNumber(code)) {
      const end = skipNumber(text, at)
      if (isInexact(text, at, end)) starts.push(at)
      at = end - 1
    }
  }
  return starts
}

/** Whether a number begins with this character, outside of strings. */
export function beginsNumber(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS
}

/** The place behind the number that begins here; behind what looks like one, in a text that is not valid JSON. */
export function skipNumber(text: string, start: number): number {
  let end = start + 1
  while (continuesNumber(text.charCodeAt(end))) end++
  return end
}

function continuesNumber(code: number): boolean {
  return beginsNumber(code) || code === DOT || code === SMALL_E || code === BIG_E || code === PLUS
}

/** Whether JSON.parse and JSON.stringify would not give this number back as it is written. */
export function isInexact(text: string, start: number, end: number): boolean {
  if (end - start <= SAFE_LENGTH && isPlainlyExact(text, start, end)) return false
  const source = text.slice(start, end)
  return source !== String(Number(source))
}

/** Tells most short numbers by their characters, which is faster than to write them once more. */
function isPlainlyExact(text: string, start: number, end: number): boolean {
  let hasDot = false
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) hasDot = true
    else if (code < ZERO || code > NINE) return false
  }
  return !hasDot || (text.charCodeAt(end - 1) !== ZERO && !text.startsWith(WRITTEN_WITH_EXPONENT, start))
}
