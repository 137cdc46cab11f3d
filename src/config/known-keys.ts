import type { KeyPath } from './config-error.ts'
import { fileJsonSchema, isSchema, type JsonSchema } from './json-schema.ts'
import { nearest } from './nearest.ts'

/** What to tell about a key that the file's schema does not know at this place. */
export function explainUnknownKey(parent: KeyPath, key: string): string {
  const schema = fileJsonSchema()
  const known = keysAt(schema, parent)
  if (key.includes(':')) return 'is not a known key. Put a space after the colon.'
  const meant = nearest(key, known) ?? elsewhere(schema, key)
  if (meant !== null) return `is not a known key. Did you mean ${meant}?`
  return `is not a known key. Known here: ${known.join(', ')}.`
}

function keysAt(schema: JsonSchema, path: KeyPath): string[] {
  const found = path.reduce(
    (parts, step) => parts.flatMap((part) => stepInto(part, step)),
    alternatives(schema),
  )
  const properties = found.flatMap(({ properties: own }) => (isSchema(own) ? Object.entries(own) : []))
  return properties.filter(([, part]) => !isForbidden(part)).map(([name]) => name)
}

/** The section that knows the key, when it stands one level too high or too low. */
function elsewhere(schema: JsonSchema, key: string): string | null {
  const top = keysAt(schema, [])
  if (top.includes(key)) return `${key} at the top of the file, without indentation`
  const section = top.find((name) => keysAt(schema, [name]).includes(key))
  return section === undefined || section === 'collections' ? null : `${section}.${key}`
}

function stepInto(schema: JsonSchema, step: string | number): JsonSchema[] {
  if (typeof step === 'number') return alternatives(schema.items)
  const properties = isSchema(schema.properties) ? schema.properties : {}
  return alternatives(Object.hasOwn(properties, step) ? properties[step] : schema.additionalProperties)
}

function alternatives(schema: unknown): JsonSchema[] {
  if (!isSchema(schema)) return []
  return Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(alternatives) : [schema]
}

function isForbidden(schema: unknown): boolean {
  return isSchema(schema) && schema.not !== undefined
}
