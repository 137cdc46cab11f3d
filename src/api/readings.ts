/**
 * One way to read a text: its UTF-8, a character for each byte, in small letters, with a space for each plus (which a
 * decoded query makes of it); and where in the text each byte comes from.
 */
export interface Reading {
  bytes: string
  /** Index in the text of the character, or of the escape, that byte `at` comes from. */
  from(at: number): number
  /** Index in the text behind it. */
  to(at: number): number
}

/** A character is encoded so many times at most. */
const MOST_TIMES = 8

const ESCAPE = /%([\da-f]{2})|\\{1,8}u([\da-f]{4})|&#(\d{1,7});|&#x([\da-f]{1,7});|&(amp|lt|gt|quot|apos);/g

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * The text as it is, and then decoded once, twice, ... as long as there is anything to decode: percent-encoding, and the
 * escapes of JSON and HTML, all in one step, so that a mixture is read too. Backslashes are left out in the end: how many
 * there are says only how often a text was quoted.
 */
export function* readingsOf(text: string): Iterable<Reading> {
  let reading = asItIs(text)
  for (let times = 0; times <= MOST_TIMES; times++) {
    yield rewritten(reading, /\\/g, () => '')
    const next = rewritten(reading, ESCAPE, meaningOf)
    if (next.bytes === reading.bytes) return
    reading = next
  }
}

function asItIs(text: string): Reading {
  const builder = createBuilder()
  let at = 0
  for (const character of text) {
    for (const byte of bytesOf(character)) builder.add(byte, at, at + character.length)
    at += character.length
  }
  return builder.reading()
}

function rewritten(
  { bytes, from, to }: Reading,
  pattern: RegExp,
  meaning: (match: RegExpExecArray) => string,
): Reading {
  const builder = createBuilder()
  let done = 0
  const keep = (end: number) => {
    for (; done < end; done++) builder.add(bytes.charAt(done), from(done), to(done))
  }
  for (const match of bytes.matchAll(pattern)) {
    keep(match.index)
    done = match.index + match[0].length
    for (const byte of meaning(match)) builder.add(byte, from(match.index), to(done - 1))
  }
  keep(bytes.length)
  return builder.reading()
}

/** The bytes that an escape writes. */
function meaningOf([, percent, unit, decimal, hex, name]: RegExpExecArray): string {
  if (percent !== undefined) return String.fromCharCode(Number.parseInt(percent, 16))
  if (name !== undefined) return NAMED[name] ?? ''
  const code = decimal === undefined ? Number.parseInt(unit ?? hex ?? '', 16) : Number(decimal)
  return bytesOf(code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd')
}

function bytesOf(character: string): string {
  return character.length === 1 && character < '\u0080'
    ? character
    : Buffer.from(character).toString('latin1')
}

function createBuilder() {
  const parts: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  return {
    add(byte: string, start: number, end: number) {
      parts.push(byte === '+' ? ' ' : byte.toLowerCase())
      starts.push(start)
      ends.push(end)
    },
    reading: (): Reading => ({
      bytes: parts.join(''),
      from: (at) => starts[at] ?? 0,
      to: (at) => ends[at] ?? 0,
    }),
  }
}
