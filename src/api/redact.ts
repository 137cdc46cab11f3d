/** A shorter piece of a token gives nothing away, and may be part of any text. */
const SHORTEST = 6

/** So many consecutive characters of a token, from anywhere in it, are no coincidence. */
const TELLING = 12

/** Ends a text that `printable` cut. */
const CUT = '...'

/** The longest rest of a cut escape of one character (`%25257C`, `\u007c`, `&#x7c;`). */
const HALF_ESCAPE = 7

/** What to search for, in the spelling of `readingsOf`. */
interface Needles {
  /** The token as it was given, and decoded where it seems to hold escapes. */
  spellings: string[]
  /** Of less than TELLING characters: matched anywhere. */
  wholes: string[]
  /** TELLING characters each. */
  pieces: Set<string>
  /** So short that only whole words match. */
  words: string[]
}

/** A part of the text: the index of its first character, and the index after its last. */
type Span = [from: number, to: number]

/**
 * The text without a token that a server may have echoed: as it is, in other case, percent-encoded, with
 * escapes of JSON or HTML, several times or mixed, in base64, or TELLING characters of it. Takes linear time.
 */
export function redact(text: string, token: string): string {
  if (token === '') return text
  const needles = needlesFor(token)
  const isEcho = new Uint8Array(text.length)
  for (const reading of readingsOf(text))
    for (const [from, to] of findEchoes(reading, needles)) isEcho.fill(1, from, to)
  return withoutEchoes(text, isEcho)
}

function needlesFor(token: string): Needles {
  const spellings = [...new Set(Array.from(readingsOf(token), ({ bytes }) => bytes))]
  const encoded = inBase64(token).flatMap((text) => Array.from(readingsOf(text), ({ bytes }) => bytes))
  const all = [...spellings, ...encoded].filter(({ length }) => length >= SHORTEST)
  return {
    spellings: spellings.filter(({ length }) => length > SHORTEST),
    wholes: all.filter(({ length }) => length < TELLING),
    pieces: new Set(all.flatMap(piecesOf)),
    words: spellings.filter(({ length }) => length > 0 && length < SHORTEST),
  }
}

function piecesOf(needle: string): string[] {
  return Array.from({ length: Math.max(needle.length - TELLING + 1, 0) }, (_, at) =>
    needle.slice(at, at + TELLING),
  )
}

/** The token in the base64 of a longer text, for each position in a group of three bytes where it may begin. */
function inBase64(token: string): string[] {
  const bytes = Buffer.from(token)
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
    // The first characters hold bits of the text before the token, the last one of the text after it.
    const from = before === 0 ? 0 : before + 1
    const to = Math.floor((padded.length * 8) / 6)
    return [padded.toString('base64').slice(from, to), padded.toString('base64url').slice(from, to)]
  })
}

function* findEchoes(reading: Reading, { spellings, wholes, pieces, words }: Needles): Iterable<Span> {
  const { bytes } = reading
  if (pieces.size > 0) {
    for (let at = 0; at + TELLING <= bytes.length; at++)
      if (pieces.has(bytes.slice(at, at + TELLING))) yield spanOf(reading, at, TELLING)
  }
  for (const whole of wholes) for (const at of placesOf(bytes, whole)) yield spanOf(reading, at, whole.length)
  for (const word of words)
    for (const at of placesOf(bytes, word))
      if (isWord(bytes, at, at + word.length)) yield spanOf(reading, at, word.length)
  for (const at of placesOf(bytes, CUT)) yield* findCutBeginnings(reading, at, spellings)
}

/** Beginnings of the token before a cut, with or without half an escape between them. */
function* findCutBeginnings(reading: Reading, cut: number, spellings: readonly string[]): Iterable<Span> {
  const { bytes } = reading
  for (let end = cut; end >= Math.max(cut - HALF_ESCAPE, 0); end--) {
    for (const spelling of spellings)
      for (let length = Math.min(TELLING, spelling.length) - 1; length >= SHORTEST; length--)
        if (bytes.endsWith(spelling.slice(0, length), end))
          yield [reading.from(end - length), reading.from(cut)]
  }
}

function spanOf(reading: Reading, at: number, length: number): Span {
  return [reading.from(at), reading.to(at + length - 1)]
}

function* placesOf(bytes: string, needle: string): Iterable<number> {
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) yield at
}

/** True if there is no letter, digit, _ or - on either side. */
function isWord(bytes: string, from: number, to: number): boolean {
  return !/[\w\u0080-\u00ff-]/.test(bytes.slice(Math.max(from - 1, 0), from) + bytes.slice(to, to + 1))
}

/** Writes one `[token]` for echoes that touch. */
function withoutEchoes(text: string, isEcho: Uint8Array): string {
  let result = ''
  for (let from = 0, to = 0; from < text.length; from = to) {
    to = isEcho.indexOf(isEcho[from] ? 0 : 1, from)
    if (to < 0) to = text.length
    result += isEcho[from] ? '[token]' : text.slice(from, to)
  }
  return result
}

/**
 * One way to read a text: its UTF-8 bytes as characters, in lower case, with a space for each plus (as in a
 * query), and the position in the text that each byte comes from.
 */
interface Reading {
  bytes: string
  /** The index in the text of the character, or the escape, that byte `at` comes from. */
  from(at: number): number
  /** The index after it. */
  to(at: number): number
}

/** How often a character may be encoded. */
const MOST_TIMES = 8

const ESCAPE = /%([\da-f]{2})|\\{1,8}u([\da-f]{4})|&#(\d{1,7});|&#x([\da-f]{1,7});|&(amp|lt|gt|quot|apos);/g

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/**
 * The text as it is, and then decoded once, twice, ... until nothing changes. One step decodes
 * percent-encoding and the escapes of JSON and HTML, so that mixtures are read, too. Backslashes are dropped:
 * their number only says how often a text was quoted.
 */
function* readingsOf(text: string): Iterable<Reading> {
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

/** The bytes that an escape stands for. */
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
