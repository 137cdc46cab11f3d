import { hasEscapedName } from '../json/escaped-names.ts'
import { type JsonValue, mayHoldInexactNumber, parseExact } from '../json/exact.ts'
import type { Item, Recognized } from '../sync/types.ts'

/** What is known of an item. */
export interface ItemSource {
  text: string
  /** As JSON.parse reads it; undefined where that was not done: it is recognized, or stands in an object. */
  parsed: JsonValue | undefined
  recognized: Recognized | null
}

/** An item whose values are worked out when they are asked for. A class, since getters of an object literal take a microsecond to make. */
export class ListItem implements Item {
  readonly text: string
  readonly recognized: Recognized | null
  #plain: JsonValue | undefined
  #exact: JsonValue | undefined

  constructor({ text, parsed, recognized }: ItemSource) {
    this.text = text
    this.recognized = recognized
    // What JSON.parse made of the text is right, but for some numbers, unless a name in it is written with escapes.
    this.#plain = parsed !== undefined && !hasEscapedName(text) ? parsed : undefined
  }

  get plain(): JsonValue {
    this.#plain ??= this.value
    return this.#plain
  }

  get value(): JsonValue {
    this.#exact ??=
      this.#plain === undefined || mayHoldInexactNumber(this.text) ? parseExact(this.text) : this.#plain
    return this.#exact
  }
}
