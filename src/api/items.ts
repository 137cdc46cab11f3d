/** Where the text of one item stands in a body, and its key where the list is written as an object. */
export interface Slice {
  key: string | null
  start: number
  end: number
}

const QUOTE = 34
const COMMA = 44
const OPEN_ARRAY = 91
const BACKSLASH = 92
const CLOSE_ARRAY = 93
const OPEN_OBJECT = 123
const CLOSE_OBJECT = 125

/**
 * Finds the items in the text of a body: the elements of the list at the top, or under `data`; null where there is none.
 * So each item can be kept exactly as it was sent: a number that went through JSON.parse has lost its digits beyond
 * 2^53. The text must be valid JSON, which JSON.parse has to say first; here only the structure is followed. Of two
 * `data` fields the last counts, as it does for JSON.parse.
 */
export function cutItems(text: string): Slice[] | null {
  const start = skipSpace(text, 0)
  if (text.charCodeAt(start) === OPEN_ARRAY) return cutList(text, start)
  if (text.charCodeAt(start) !== OPEN_OBJECT) return null
  const data = members(text, start).findLast((member) => member.key === 'data')
  return data ? cutList(text, data.start) : null
}

/** Whether the text ends inside a value, as an answer does that broke off on its way. For text that is not valid JSON. */
export function breaksOff(text: string): boolean {
  let depth = 0
  for (let at = skipSpace(text, 0); at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = skipString(text, at) - 1
      if (at >= text.length) return true
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++
    else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--
  }
  return depth > 0
}

/** What reading a text would take. Of a text that is not valid JSON as far as its brackets and commas tell. */
export interface Measure {
  /** How deep its values are nested. */
  depth: number
  /** Values in all, at most. */
  values: number
  /** Items at most: values of the list at the top, or of all lists and objects one level down, `data` among them. */
  items: number
}

/** Measures a JSON text before anything is made of it. */
export function measure(text: string): Measure {
  const listDepth = text.charCodeAt(skipSpace(text, 0)) === OPEN_ARRAY ? 1 : 2
  let depth = 0
  let deepest = 0
  let values = 1
  let items = 1
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (code === COMMA) {
      values++
      if (depth === listDepth) items++
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      values++
      deepest = Math.max(deepest, ++depth)
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--
  }
  return { depth: deepest, values, items }
}

function cutList(text: string, start: number): Slice[] | null {
  const code = text.charCodeAt(start)
  if (code === OPEN_ARRAY) return elements(text, start)
  return code === OPEN_OBJECT ? members(text, start) : null
}

function elements(text: string, list: number): Slice[] {
  const slices: Slice[] = []
  for (let at = skipSpace(text, list + 1); text.charCodeAt(at) !== CLOSE_ARRAY; at = nextOf(text, at)) {
    const end = skipValue(text, at)
    slices.push({ key: null, start: at, end })
    at = end
  }
  return slices
}

function members(text: string, object: number): Slice[] {
  const slices: Slice[] = []
  for (let at = skipSpace(text, object + 1); text.charCodeAt(at) !== CLOSE_OBJECT; at = nextOf(text, at)) {
    const keyEnd = skipString(text, at)
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1)
    const end = skipValue(text, start)
    slices.push({ key: JSON.parse(text.slice(at, keyEnd)), start, end })
    at = end
  }
  return slices
}

/** Where the next member or element begins, or the closing bracket stands. */
function nextOf(text: string, end: number): number {
  const at = skipSpace(text, end)
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at
}

/** The place behind the value that begins here. */
function skipValue(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === QUOTE) return skipString(text, start)
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return skipWord(text, start)
  let depth = 0
  for (let at = start; ; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = skipString(text, at) - 1
    else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++
    else if ((code === CLOSE_OBJECT || code === CLOSE_ARRAY) && --depth === 0) return at + 1
  }
}

/** The place behind a number, true, false or null. */
function skipWord(text: string, start: number): number {
  const word = /[^,\]}\s]*/y
  word.lastIndex = start
  word.exec(text)
  return word.lastIndex
}

/** The place behind the string that begins here; behind the text's end, when it has no end. */
function skipString(text: string, start: number): number {
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

function skipSpace(text: string, start: number): number {
  let at = start
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}
