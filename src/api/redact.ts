/** So many consecutive characters of a token, from anywhere in it, are no coincidence. */
const TELLING = 12

/**
 * The text without each word that holds the token or a piece of it, as it is, percent-encoded, in other case or with
 * backslashes: a server may echo the request's headers.
 */
export function redact(text: string, token: string): string {
  if (token === '') return text
  const pieces = [token, encodeURIComponent(token)].flatMap((one) => piecesOf(folded(one)))
  return text.replace(/\S+/g, (word) => {
    const read = folded(word)
    return pieces.some((piece) => read.includes(piece)) ? '[token]' : word
  })
}

/** The number of backslashes only says how often a text was quoted. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll('\\', '')
}

function piecesOf(token: string): string[] {
  const length = Math.min(token.length, TELLING)
  return Array.from({ length: token.length - length + 1 }, (_, at) => token.slice(at, at + length))
}
