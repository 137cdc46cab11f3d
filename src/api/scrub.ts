import { type Reading, readingsOf } from './readings.ts'

/** A shorter piece of a token gives nothing away, and may be part of any text. */
const SHORTEST = 6

/** So many characters of a token in a row are no chance, wherever in it they come from. */
const TELLING = 12

/** What `printable` writes where it cuts a text. */
const CUT = '...'

/** What remains of the escape of one character (`%25257C`, `\u007c`, `&#x7c;`) where a text is cut: so much at most. */
const HALF_ESCAPE = 7

/** What to look for in a text, as `readingsOf` spells it. */
interface Needles {
  /** The token, as it was given and with what looks like an escape in it decoded. */
  spellings: string[]
  /** Of less than TELLING characters: found wherever they are. */
  wholes: string[]
  /** TELLING characters each. */
  pieces: Set<string>
  /** So short that they are found as words of their own alone. */
  words: string[]
}

/** A part of the text, from its first character to the one behind its last. */
type Span = [from: number, to: number]

/**
 * The text without the token that a server may have echoed: as it is, in other capitals, percent-encoded, with the escapes
 * of JSON or HTML, several times or in a mixture, in base64, or TELLING characters of it. Takes time that grows with the
 * length of the text and of the token, and no more.
 */
export function scrub(text: string, token: string): string {
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
  // What is shorter says little, and may be part of any text.
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

/** The base64 of whatever text holds the token: it depends on where in its groups of three the token begins. */
function inBase64(token: string): string[] {
  const bytes = Buffer.from(token)
  return [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
    // The first characters hold bits of what comes before the token, the last one of what comes behind it.
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

/** The beginnings of a token in front of a cut, with half an escape in between or not. */
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

/** Whether no letter, digit, _ or - is on either side. */
function isWord(bytes: string, from: number, to: number): boolean {
  return !/[\w\u0080-\u00ff-]/.test(bytes.slice(Math.max(from - 1, 0), from) + bytes.slice(to, to + 1))
}

/** Echoes that touch are one. */
function withoutEchoes(text: string, isEcho: Uint8Array): string {
  let result = ''
  for (let from = 0, to = 0; from < text.length; from = to) {
    to = isEcho.indexOf(isEcho[from] ? 0 : 1, from)
    if (to < 0) to = text.length
    result += isEcho[from] ? '[token]' : text.slice(from, to)
  }
  return result
}
