/** A shorter piece of a token gives nothing away, and might stand in any text. */
const SHORTEST = 6

/** The text without the token that a server may have echoed: as it is, encoded, or where `printable` cut it. */
export function scrub(text: string, token: string): string {
  const forms = [token, encodeURIComponent(token), token.replaceAll('/', '\\/')]
  return forms.reduce((rest, form) => withoutBeginnings(rest.replaceAll(form, '[token]'), form), text)
}

function withoutBeginnings(text: string, form: string): string {
  let rest = text
  for (let length = form.length - 1; length >= SHORTEST; length--) {
    rest = rest.replaceAll(`${form.slice(0, length)}...`, '[token]...')
  }
  return rest
}
