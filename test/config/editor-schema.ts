import fs from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { isMapping } from '../../src/config/checks.ts'
import { FileSchema } from '../../src/config/schema.ts'

// `npm run schema` writes config/admin-mirror.schema.json, by which editors know the keys of the configuration.

export const SCHEMA_FILE = path.resolve(import.meta.dirname, '../../config/admin-mirror.schema.json')

/** A JSON Schema or a part of one. */
export type JsonSchema = Record<string, unknown>

/** The JSON Schema of the configuration file: what may be typed there, `${NAME}` included. */
export function editorSchema(): JsonSchema {
  const schema = z.toJSONSchema(FileSchema, {
    io: 'input',
    target: 'draft-7',
    override({ zodSchema, jsonSchema }) {
      // zod omits the default of a value that is parsed from a text; and a default is a text before it is parsed.
      if (zodSchema instanceof z.ZodDefault) jsonSchema.default = zodSchema.def.defaultValue
    },
  })
  return allowVariables(schema)
}

const VARIABLE: JsonSchema = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}' }

/** Allows `${NAME}` in place of any number, truth value or restricted text. */
function allowVariables(schema: JsonSchema): JsonSchema {
  const { description, default: standard, ...rest } = mapParts(schema)
  const isNumber = rest.type === 'number' || rest.type === 'integer'
  const shown = {
    ...(description === undefined ? {} : { description }),
    ...(standard === undefined ? {} : { default: readDefault(standard, isNumber, rest.type === 'boolean') }),
  }
  const isRestricted =
    isNumber || rest.type === 'boolean' || rest.pattern !== undefined || rest.enum !== undefined
  return isRestricted ? { ...shown, anyOf: [rest, VARIABLE] } : { ...rest, ...shown }
}

function readDefault(standard: unknown, isNumber: boolean, isSwitch: boolean): unknown {
  return isNumber ? Number(standard) : isSwitch ? standard === 'true' : standard
}

function mapParts(schema: JsonSchema): JsonSchema {
  const mapped: JsonSchema = { ...schema }
  for (const name of ['items', 'additionalProperties']) {
    const part = schema[name]
    if (isMapping(part)) mapped[name] = allowVariables(part)
  }
  if (Array.isArray(schema.anyOf))
    mapped.anyOf = schema.anyOf.map((part) => (isMapping(part) ? allowVariables(part) : part))
  if (isMapping(schema.properties))
    mapped.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, part]) => [
        name,
        isMapping(part) ? allowVariables(part) : part,
      ]),
    )
  return mapped
}

/** As the repository has it. */
export function schemaText(): string {
  return `${JSON.stringify(editorSchema(), null, 2)}\n`
}

if (import.meta.filename === process.argv[1]) fs.writeFileSync(SCHEMA_FILE, schemaText())
