import { isJsonObject, type JsonObject, parseExact } from '../../../src/json/exact.ts'
import { type Catalog, createCatalog } from '../../../src/mirror/columns/catalog.ts'
import { discoverElements, type ElementColumn } from '../../../src/mirror/columns/elements.ts'
import { type Placement, placeItem } from '../../../src/mirror/columns/place.ts'

/** The item that a JSON text of an object stands for. */
export function item(text: string): JsonObject {
  const value = parseExact(text)
  if (!isJsonObject(value)) throw new Error(`not an object: ${text}`)
  return value
}

/** Places items one after another, each in the catalog that the one before left. */
export function placeAll(
  texts: readonly string[],
  start: Catalog = createCatalog([], [['id']]),
): Placement[] {
  let catalog = start
  return texts.map((text) => {
    const placement = placeItem(catalog, item(text))
    catalog = placement.catalog
    return placement
  })
}

/** The values of `{"a": TEXT}` for each of the texts, placed one after another. */
export function placeValues(texts: readonly string[]): Record<string, unknown>[] {
  return placeAll(texts.map((text) => `{"a":${text}}`)).map(({ values }) => Object.fromEntries(values))
}

/** The columns of the view after these arrays. */
export function elementsOf(arrays: readonly string[]): readonly ElementColumn[] {
  return arrays.reduce<readonly ElementColumn[]>((known, text) => {
    const array = parseExact(text)
    return Array.isArray(array) ? discoverElements(known, array) : known
  }, [])
}
