import { isUtf8 } from 'node:buffer'
import { JobError, RetryableError } from '../errors.ts'
import { parseExact } from '../json/exact.ts'
import { isJsonObject, type JsonValue } from '../json/value.ts'
import { printable } from '../text.ts'

const UTF_8 = new TextDecoder()

/** Returns the JSON of a body, its numbers exact. Throws BAD_RESPONSE, to be tried again where the body breaks off. */
export function parseBody(body: Uint8Array): JsonValue {
  const text = UTF_8.decode(body)
  if (text.trim() === '') throw notTheList(`the answer is empty; ${ADDRESS}?`)
  // Where a body breaks off within a character, one stands in its place.
  if (!isUtf8(body))
    throw breaksOff(text) ? brokenOff(body) : notTheList(`the answer is not UTF-8 text; ${AT_THE_SERVER}`)
  try {
    return parseExact(text)
  } catch (error) {
    if (error instanceof RangeError) throw notTheList('the answer is nested too deeply')
    if (breaksOff(text)) throw brokenOff(body)
    throw notTheList(whatCame(text.trimStart(), error as SyntaxError))
  }
}

/** What a text that is not JSON is, and what to do about it. */
function whatCame(text: string, { message }: SyntaxError): string {
  const title = titleOf(text)
  if (title !== null)
    return `the answer is a page of HTML, not JSON${title}; ${ADDRESS}, or does a login page or a proxy answer?`
  // Without V8's piece of the text, which may be half of a token.
  if (/^[[{]/.test(text))
    return `the answer is broken JSON (${message.replace(/, (?:\.{3})?".*/s, '')}): ${printable(text, 80)}; ${AT_THE_SERVER}`
  // PHP writes its warnings, in HTML, in front of what a program answers.
  const shown = printable(text.replaceAll(/<\/?[a-z][^>]*>/gi, '').trim(), 80)
  return `the answer is not JSON: ${shown}; ${ADDRESS}?`
}

const ADDRESS = "is api.baseUrl the API's address"

/** For a 2xx response that is not the requested list. */
export function notTheList(message: string): JobError {
  return new JobError('BAD_RESPONSE', message)
}

/** What to do about an answer that the API's server would not write. */
export const AT_THE_SERVER = 'look at the server, or at a proxy before it'

/** What to do about an answer that did not come whole, if trying again does not help. */
export const IF_IT_STAYS = `if it stays so, ${AT_THE_SERVER}`

/** What to do about an answer to another question than ours. */
export const IF_NOT_THE_API = 'look at api.baseUrl and the path of the list, or at a proxy before the API'

function brokenOff(body: Uint8Array): RetryableError {
  return new RetryableError(
    'BAD_RESPONSE',
    `the answer breaks off after ${body.length} bytes; ${IF_IT_STAYS}`,
  )
}

/** What an answer says of itself in words: its `message`, else its `error`; null if it says nothing. */
export function saidIn(json: JsonValue | undefined): string | null {
  if (json === undefined || !isJsonObject(json)) return null
  const { message, error } = json
  const said = [message, error].find((one) => typeof one === 'string' && one !== '')
  return typeof said === 'string' ? said : null
}

/** The title of a page of HTML, in brackets and for a message; empty if it has none, null if the text is no HTML. */
export function titleOf(text: string): string | null {
  const html = text.slice(0, 10_000).trimStart()
  if (!HTML.test(html)) return null
  const [, element = ''] = html.split(/<title/i, 2)
  const title = element.split('<', 1)[0]?.split('>', 2)[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}

const HTML = /^<(?:!--|!doctype html|html|head|title|meta|body|center|div|h\d)/i

/** True if a list or object is not valid JSON since it ends too soon: V8 says so, or names the end as the place. */
export function breaksOff(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    const { message } = error as Error
    const [, place] = /at position (\d+)/.exec(message) ?? []
    return (
      /^(?:Unexpected end|Unterminated|Bad Unicode escape)/.test(message) || Number(place) === text.length
    )
  }
}
