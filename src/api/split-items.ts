import {
  beginsNumber,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isInexact,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipNumber,
  skipSpace,
  skipString,
} from '../json/exact.ts'

/** The part of a body that is one item, and the item's key if the list is written as an object. */
export interface Slice {
  key: string | null
  start: number
  end: number
  /** Starts, within the item, of the numbers that JSON.parse changes; for `parseExactAt`. */
  inexact: readonly number[]
}

/** What parsing a text would cost, and where its items are, judged by brackets and commas alone. */
export interface Outline {
  /** Levels of nesting. */
  depth: number
  /** An upper bound of the number of values. */
  values: number
  /** An upper bound: elements of the top list, or of all lists and objects one level down, as `data` is. */
  items: number
  /**
   * The elements of the top list or of `data`, exactly as they were sent; null if there is no list. Correct
   * for valid JSON only, which JSON.parse has to check. Of two `data` fields the last counts, as for
   * JSON.parse.
   */
  slices: readonly Slice[] | null
}

/**
 * Scans a JSON text once, before it is parsed.
 * @param mostItems Items beyond these are counted, but have no slice.
 */
export function outline(text: string, mostItems: number): Outline {
  const listDepth = text.charCodeAt(skipSpace(text, 0)) === OPEN_ARRAY ? 1 : 2
  const cutter = createCutter(text, mostItems, listDepth === 1)
  let depth = 0
  let deepest = 0
  let values = 1
  let items = 1
  let nameStart = 0
  let nameEnd = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      nameStart = at
      nameEnd = skipString(text, at)
      at = nameEnd - 1
    } else if (code === COMMA) {
      values++
      if (depth === listDepth) {
        items++
        cutter.endItem(at)
      }
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      values++
      if (++depth > deepest) deepest = depth
      if (depth === listDepth) cutter.open(at)
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      if (depth-- === listDepth) cutter.close(at)
    } else if (code === COLON && depth <= listDepth) {
      if (depth === listDepth) cutter.beginItem(nameStart, nameEnd, at)
      else cutter.expect(nameOf(text, nameStart, nameEnd) === 'data')
      // So that a long name followed by many colons is not read for each of them.
      nameStart = nameEnd
    } else if (beginsNumber(code)) {
      const end = skipNumber(text, at)
      if (isInexact(text, at, end)) cutter.noteInexact(at)
      at = end - 1
    }
  }
  return { depth: deepest, values, items, slices: cutter.slices() }
}

/** Collects the slices of the expected list; `outline` calls it for each list that may be the one. */
function createCutter(text: string, mostItems: number, isExpectedFirst: boolean) {
  let slices: Slice[] | null = null
  let isExpected = isExpectedFirst
  let isOpen = false
  let key: string | null = null
  let start = 0
  let inexact: number[] = []

  function endItem(end: number): void {
    if (!isOpen || slices === null || slices.length >= mostItems) return
    const first = skipSpace(text, start)
    const within = inexact.map((at) => at - first)
    if (first < end) slices.push({ key, start: first, end: skipSpaceBack(text, end), inexact: within })
    beginAt(end + 1)
  }

  function beginAt(from: number): void {
    start = from
    inexact = []
  }

  return {
    /** Says whether the next value is the list. If so, an earlier one is dropped. */
    expect: (isNext: boolean) => {
      isExpected = isNext
      if (isNext) slices = null
    },
    open: (at: number) => {
      if (!isExpected) return
      isOpen = true
      slices = []
      key = null
      beginAt(at + 1)
    },
    beginItem: (nameStart: number, nameEnd: number, colon: number) => {
      if (!isOpen) return
      key = nameOf(text, nameStart, nameEnd)
      beginAt(colon + 1)
    },
    noteInexact: (at: number) => {
      if (isOpen) inexact.push(at)
    },
    endItem,
    close: (at: number) => {
      endItem(at)
      isOpen = false
      isExpected = false
    },
    slices: () => slices,
  }
}

/** The name of a field; empty if no string precedes the colon, and arbitrary in invalid JSON. */
function nameOf(text: string, start: number, end: number): string {
  // Before the first string both are 0: a slice to -1 would be the whole text, for each of its colons.
  if (start === end) return ''
  const written = text.slice(start + 1, end - 1)
  if (!written.includes('\\')) return written
  try {
    return JSON.parse(`"${written}"`)
  } catch {
    return written
  }
}

/** True if a text that is not valid JSON ends inside a value, so that it may have broken off. */
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

/** The index behind the last character before `end` that is not white space. */
function skipSpaceBack(text: string, end: number): number {
  let at = end
  while (isSpace(text.charCodeAt(at - 1))) at--
  return at
}
