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
} from '../json/scan.ts'

/** Where the text of one item stands in a body, and its key where the list is written as an object. */
export interface Slice {
  key: string | null
  start: number
  end: number
  /** Where in it the numbers begin that JSON.parse changes, for `parseExactAt`. */
  inexact: readonly number[]
}

/**
 * What reading a text would take, and where its items stand. Of a text that is not valid JSON as far as its brackets and
 * commas tell.
 */
export interface Outline {
  /** How deep its values are nested. */
  depth: number
  /** Values in all, at most. */
  values: number
  /** Items at most: values of the list at the top, or of all lists and objects one level down, `data` among them. */
  items: number
  /**
   * The elements of the list at the top, or under `data`; null where there is none. So each item can be kept exactly as it
   * was sent: a number that went through JSON.parse has lost its digits beyond 2^53. Right for valid JSON alone, which
   * JSON.parse has to say. Of two `data` fields the last counts, as it does for JSON.parse.
   */
  slices: readonly Slice[] | null
}

/**
 * Looks through a JSON text before anything is made of it, once, also for the numbers that JSON.parse would change.
 * @param mostItems more than these are counted, and not told where they stand.
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
      // A long name before nothing but colons must not be read for each of them.
      nameStart = nameEnd
    } else if (beginsNumber(code)) {
      const end = skipNumber(text, at)
      if (isInexact(text, at, end)) cutter.noteInexact(at)
      at = end - 1
    }
  }
  return { depth: deepest, values, items, slices: cutter.slices() }
}

/** Is led past the lists where items may be, and cuts the one that is expected. */
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

  function beginAt(place: number): void {
    start = place
    inexact = []
  }

  return {
    /** Whether the next value is the list. Then none that came before it is. */
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

/** The name of a field; in a text that is not valid JSON anything, and empty where no string stands before the colon. */
function nameOf(text: string, start: number, end: number): string {
  // Before the first string both are 0, and a slice to -1 would be all of the text, for each of its colons.
  if (start === end) return ''
  const written = text.slice(start + 1, end - 1)
  if (!written.includes('\\')) return written
  try {
    return JSON.parse(`"${written}"`)
  } catch {
    return written
  }
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

/** The place behind the last character before `end` that is no white space. */
function skipSpaceBack(text: string, end: number): number {
  let at = end
  while (isSpace(text.charCodeAt(at - 1))) at--
  return at
}
