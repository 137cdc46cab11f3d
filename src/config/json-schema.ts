import { z } from 'zod'
import { isMapping } from './problems.ts'
import { FileSchema } from './schema.ts'

/** A JSON Schema or a part of one. */
export type JsonSchema = Record<string, unknown>

/** The JSON Schema of the configuration file, for editors: what may be typed there, `${NAME}` included. */
export function configJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(FileSchema, { io: 'input', target: 'draft-7', override: withDefault })
  return isMapping(schema) ? allowVariables(schema) : {}
}

/** zod omits the default of a value that is parsed from a text. */
function withDefault({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes
  jsonSchema: JsonSchema
}): void {
  if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue
}

/** The JSON Schema of the values, without what is added for editors. */
export function fileJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(FileSchema, { io: 'input' })
  return isMapping(schema) ? schema : {}
}

const VARIABLE: JsonSchema = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}' }

/** Allows `${NAME}` in place of any number, truth value or restricted text. */
function allowVariables(schema: JsonSchema): JsonSchema {
  const { description, default: standard, ...rest } = portable(mapParts(schema, allowVariables))
  if (!isRestrictedScalar(rest)) return { ...rest, ...given({ description, default: standard }) }
  return { ...given({ description, default: standard }), anyOf: [rest, VARIABLE] }
}

/** Some validators know no Unicode classes in regular expressions (Python). */
function portable(schema: JsonSchema): JsonSchema {
  const { pattern } = schema
  if (typeof pattern !== 'string') return schema
  return { ...schema, pattern: pattern.replaceAll('\\p{Cc}', '\\u0000-\\u001f\\u007f-\\u009f') }
}

function isRestrictedScalar({ type, pattern, enum: choices }: JsonSchema): boolean {
  const isText = type === 'string' || (Array.isArray(type) && type.includes('string'))
  return isText
    ? pattern !== undefined || choices !== undefined
    : isOneOf(type, ['number', 'integer', 'boolean'])
}

function isOneOf(type: unknown, types: readonly string[]): boolean {
  return types.some((name) => name === type)
}

function mapParts(schema: JsonSchema, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  const mapped: JsonSchema = { ...schema }
  for (const name of ['items', 'additionalProperties']) {
    const part = schema[name]
    if (isMapping(part)) mapped[name] = change(part)
  }
  if (Array.isArray(schema.anyOf))
    mapped.anyOf = schema.anyOf.map((part) => (isMapping(part) ? change(part) : part))
  if (isMapping(schema.properties)) mapped.properties = mapValues(schema.properties, change)
  return mapped
}

function mapValues(properties: JsonSchema, change: (part: JsonSchema) => JsonSchema): JsonSchema {
  return Object.fromEntries(
    Object.entries(properties).map(([name, part]) => [name, isMapping(part) ? change(part) : part]),
  )
}

function given(keywords: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(keywords).filter(([, value]) => value !== undefined))
}
