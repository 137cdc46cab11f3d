/** A shorter piece of a token gives nothing away, and might stand in any text. */
const SHORTEST = 6

/** So much of a token's beginning is no chance any more, wherever it stands. */
const TELLING = 12

/** `printable` leaves no more of a text, and a pattern for much more would be too large to be one. */
const LONGEST = 200

/** A character of which `printable` left only the beginning: of `%257C`, `\u007c` or `&#x7c;`. */
const HALF = String.raw`(?:%[\da-f]{0,5}|\\{1,4}(?:u[\da-f]{0,3})?|&(?:#x?[\da-f]{0,5})?)?`

/**
 * The text without the token that a server may have echoed: as it is, in other capitals, percent-encoded once or more,
 * with the escapes of JSON or HTML, a mixture of all, in base64, or only its beginning.
 */
export function scrub(text: string, token: string): string {
  return token === '' ? text : text.replace(echoOf(token), '[token]')
}

function echoOf(token: string): RegExp {
  const characters = Array.from(token)
  const forms = characters.slice(0, LONGEST).map(formsOf)
  const whole = forms.join('') + (characters.length > LONGEST ? String.raw`\S*` : '')
  if (forms.length <= SHORTEST) return new RegExp(whole, 'giu')
  const beginning = forms.slice(0, SHORTEST).join('')
  const telling = forms.slice(0, TELLING).join('')
  const echoes = [whole, ...inBase64(token), `${telling}${moreOf(forms.slice(TELLING))}`]
  return new RegExp(
    `${echoes.join('|')}|${beginning}${moreOf(forms.slice(SHORTEST))}${HALF}(?=\\.{3})`,
    'giu',
  )
}

/** Each further character stands within the option of the one before it, so that none is left out in between. */
function moreOf(forms: readonly string[]): string {
  return forms.reduceRight((rest, form) => `(?:${form}${rest})?`, '')
}

/** The base64 of whatever text holds the token: it depends on where in its groups of three the token begins. */
function inBase64(token: string): string[] {
  const bytes = Buffer.from(token)
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    // The first characters hold bits of what stands before the token, the last one of what stands behind it.
    const own = text.slice(before === 0 ? 0 : before + 1, Math.floor(((before + bytes.length) * 8) / 6))
    return own.length >= TELLING ? [own.replaceAll('-', '[-+]').replaceAll('_', '[_/]')] : []
  })
}

/** All that may stand for one character, as a pattern. Escapes and encodings may have been escaped or encoded again. */
function formsOf(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16)
  const bytes = [...Buffer.from(character)].map((byte) => `%(?:25){0,3}${byte.toString(16).padStart(2, '0')}`)
  const forms = [
    // Backslashes of which each may be one or more could be shared out in so many ways that trying all takes for ever.
    (character === '\\' ? '' : String.raw`\\{0,3}`) + String.raw`\u{${code}}`,
    bytes.join(''),
    String.raw`\\{1,4}u${code.padStart(4, '0')}`,
    `&#(?:x0{0,4}${code}|0{0,4}${Number.parseInt(code, 16)});`,
  ]
  // A query that is decoded makes a space of a plus.
  return `(?:${character === '+' ? [...forms, ' '].join('|') : forms.join('|')})`
}
