import { type JsonValue, parseExact } from '../json/exact.ts'
import type { Item, Recognized } from '../sync/types.ts'

/**
 * An item that is read when its value is asked for, if it was not before. A class, since the getters of an object literal
 * take a microsecond to make.
 */
export class ListItem implements Item {
  readonly text: string
  readonly recognized: Recognized | null
  #value: JsonValue | undefined

  /** @param value What `parseExact` makes of the text, if that is known. */
  constructor(text: string, value: JsonValue | undefined, recognized: Recognized | null) {
    this.text = text
    this.recognized = recognized
    this.#value = value
  }

  get value(): JsonValue {
    this.#value ??= parseExact(this.text)
    return this.#value
  }
}
