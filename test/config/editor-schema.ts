import fs from 'node:fs'
import path from 'node:path'
import { z } from 'zod'
import { FileSchema } from '../../src/config/schema.ts'

// `npm run schema` writes config/admin-mirror.schema.json, by which editors know the keys of the configuration.

export const SCHEMA_FILE = path.resolve(import.meta.dirname, '../../config/admin-mirror.schema.json')

/** A JSON Schema or a part of one. */
export type JsonSchema = Record<string, unknown>

const VARIABLE = { type: 'string', pattern: '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}' }

/** The JSON Schema of the configuration file: what may be typed there, `${NAME}` included. */
export function editorSchema(): JsonSchema {
  return z.toJSONSchema(FileSchema, {
    io: 'input',
    target: 'draft-7',
    override({ zodSchema, jsonSchema }) {
      const { description, default: byDefault, $schema: _, ...form } = jsonSchema
      // A number is read from a text.
      if (zodSchema instanceof z.ZodPipe && zodSchema.def.out instanceof z.ZodNumber) {
        const { $schema: __, ...number } = z.toJSONSchema(zodSchema.def.out)
        return replace(jsonSchema, { description, anyOf: [number, VARIABLE] })
      }
      const isRestricted = form.type === 'boolean' || form.pattern !== undefined || form.enum !== undefined
      if (isRestricted)
        replace(jsonSchema, { description, default: byDefault, anyOf: [{ ...form }, { ...VARIABLE }] })
      const [first] = Array.isArray(form.anyOf) ? form.anyOf : [form]
      if (typeof byDefault === 'string' && /^(?:number|integer|boolean)$/.test(String(first?.type)))
        jsonSchema.default = JSON.parse(byDefault)
    },
  })
}

function replace(json: JsonSchema, given: JsonSchema): void {
  for (const name of Object.keys(json)) delete json[name]
  Object.assign(json, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)))
}

/** As the repository has it. */
export function schemaText(): string {
  return `${JSON.stringify(editorSchema(), null, 2)}\n`
}

if (import.meta.filename === process.argv[1]) fs.writeFileSync(SCHEMA_FILE, schemaText())
