import type { Job, Recognized } from '../sync/types.ts'
import { packTexts } from '../text.ts'
import type { RawRows } from './raw-rows.ts'

/**
 * Finds the items that are kept with just these texts, without reading the texts: to read a page that did not change, and to
 * clear away what that leaves, is a seventh of the work on it. The key is guessed, which can do no harm: whatever row has it,
 * if that row holds just this text, then somebody has read the text before, and found this key in it.
 * @param asOf A name for the rows as they stand now.
 */
export function recognizeItems(
  rows: RawRows,
  asOf: object,
  { organization, collection }: Job,
  texts: readonly string[],
): (Recognized | null)[] {
  const guesses = collection.key.map(guessOf)
  const recognize = (text: string): Recognized | null => {
    const key = guesses.map((guess, index) => ({
      text: guess(text),
      integer: rows.keyTypes[index] === 'INTEGER',
    }))
    if (rows.find(organization.id, key) !== text) return null
    return { key: { id: packTexts(key.map((part) => part.text)), parts: key }, asOf }
  }
  // Most often all items of a page are known or none is, as when the list is read for the first time.
  const some = [texts[0], texts[texts.length >> 1]]
  const isWorthIt = some.some((text) => text !== undefined && recognize(text))
  return texts.map((text) => (isWorthIt ? recognize(text) : null))
}

/** Gives the value of the first field of this name that is a whole number or a text without escapes; an empty text if there is none. */
function guessOf(name: string): (text: string) => string {
  const pattern = new RegExp(`${RegExp.escape(JSON.stringify(name))}\\s*:\\s*(?:(-?\\d+)|"([^"\\\\]+)")`)
  return (text) => {
    const [, number, string] = pattern.exec(text) ?? []
    return number ?? string ?? ''
  }
}
