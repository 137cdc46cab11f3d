/** The characters that JSON is made of, as `charCodeAt` returns them. */
export const QUOTE = 34
const PLUS = 43
export const COMMA = 44
const MINUS = 45
const DOT = 46
const ZERO = 48
const NINE = 57
export const COLON = 58
const BIG_E = 69
export const OPEN_ARRAY = 91
export const BACKSLASH = 92
export const CLOSE_ARRAY = 93
const SMALL_E = 101
export const OPEN_OBJECT = 123
export const CLOSE_OBJECT = 125

/** JSON.parse keeps any number of so many digits. */
const SAFE_LENGTH = 15

/** Fractions below a millionth, which JavaScript writes as 5e-7. */
const WRITTEN_WITH_EXPONENT = '0.000000'

/** The index of the first character from `start` on that is no white space of JSON. */
export function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

export function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** The index behind the string that begins at `start`; behind the end of the text if the string is not closed. */
export function skipString(text: string, start: number): number {
  let end = start
  do end = text.indexOf('"', end + 1)
  while (end !== -1 && isEscaped(text, end))
  return end === -1 ? text.length + 1 : end + 1
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}

/** Whether a number begins with this character, outside of strings. */
export function beginsNumber(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS
}

/** The index behind the number that begins at `start`; in invalid JSON behind what looks like one. */
export function skipNumber(text: string, start: number): number {
  let end = start + 1
  while (continuesNumber(text.charCodeAt(end))) end++
  return end
}

function continuesNumber(code: number): boolean {
  return beginsNumber(code) || code === DOT || code === SMALL_E || code === BIG_E || code === PLUS
}

/** Where the numbers begin that a plain JSON.parse would change; in invalid JSON, what looks like such numbers. */
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

/** Whether JSON.parse and JSON.stringify would not return this number as it is written. */
export function isInexact(text: string, start: number, end: number): boolean {
  if (end - start <= SAFE_LENGTH && isPlainlyExact(text, start, end)) return false
  const source = text.slice(start, end)
  return source !== String(Number(source))
}

/** Decides most short numbers by their characters, which is faster than writing them. False proves nothing. */
function isPlainlyExact(text: string, start: number, end: number): boolean {
  let hasDot = false
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) hasDot = true
    else if (code < ZERO || code > NINE) return false
  }
  return !hasDot || (text.charCodeAt(end - 1) !== ZERO && !text.startsWith(WRITTEN_WITH_EXPONENT, start))
}
