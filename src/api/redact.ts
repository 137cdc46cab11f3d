/** This many consecutive characters of a token, from anywhere in it, are no coincidence. */
const TELLING = 12

/** Where `printable` cut a text, this many are enough: fewer give nothing away. */
const TELLING_IF_CUT = 6

const CUT = '...'

/**
 * The text without each word that holds the token, or a piece of it: a server may echo the request's headers. The token is recognized
 * as it is, in other case, percent-encoded, with escapes of JSON or HTML, several times or mixed, and in base64.
 */
export function redact(text: string, token: string): string {
  if (token === '') return text
  const folded = token.toLowerCase().replaceAll('\\', '')
  const whole = piecesOf(folded, TELLING)
  const cut = piecesOf(folded, TELLING_IF_CUT)
  return text.replace(/\S+/g, (word) => (holds(word, word.includes(CUT) ? cut : whole) ? '[token]' : word))
}

interface Pieces {
  length: number
  texts: ReadonlySet<string>
}

function piecesOf(token: string, most: number): Pieces {
  const length = Math.min(token.length, most)
  const starts = Array.from({ length: token.length - length + 1 }, (_, at) => at)
  return { length, texts: new Set(starts.map((at) => token.slice(at, at + length))) }
}

function holds(word: string, { length, texts }: Pieces): boolean {
  for (const reading of readingsOf(word))
    for (let at = 0; at + length <= reading.length; at++)
      if (texts.has(reading.slice(at, at + length))) return true
  return false
}

/** How often a character may be encoded. */
const MOST_TIMES = 8

/**
 * The word as it is, decoded once, twice, ... until nothing changes, and what base64 in it says. In lower case, and without backslashes:
 * their number only says how often a text was quoted.
 */
function* readingsOf(word: string): Iterable<string> {
  let reading = word.toLowerCase()
  for (let times = 0; times <= MOST_TIMES; times++) {
    yield reading.replaceAll('\\', '')
    const next = reading.replace(ESCAPE, decoded)
    if (next === reading) break
    reading = next
  }
  for (const [run] of word.matchAll(/[\w+/-]{8,}/g))
    for (let before = 0; before < 4; before++)
      yield Buffer.from(run.slice(before), 'base64').toString().toLowerCase().replaceAll('\\', '')
}

const ESCAPE =
  /((?:%[\da-f]{2})+)|\\{1,8}u([\da-f]{4})|&#(\d{1,7});|&#x([\da-f]{1,7});|&(amp|lt|gt|quot|apos);/g

const HTML_NAMES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decoded(
  _escape: string,
  percent: string | undefined,
  unit: string | undefined,
  decimal: string | undefined,
  hex: string | undefined,
  name: string | undefined,
): string {
  if (percent !== undefined) return Buffer.from(percent.replaceAll('%', ''), 'hex').toString().toLowerCase()
  if (name !== undefined) return HTML_NAMES[name] ?? ''
  const code = decimal === undefined ? Number.parseInt(unit ?? hex ?? '', 16) : Number(decimal)
  return code <= 0x10ffff ? String.fromCodePoint(code).toLowerCase() : ''
}
