import fs from 'node:fs'
import path from 'node:path'
import { editorSchema } from '../../src/config/schema.ts'

export const SCHEMA_FILE = path.resolve(import.meta.dirname, '../../config/admin-mirror.schema.json')

/** The JSON Schema of the configuration, as the repository has it for editors. */
export function schemaText(): string {
  return `${JSON.stringify(editorSchema(), null, 2)}\n`
}

if (import.meta.filename === process.argv[1]) fs.writeFileSync(SCHEMA_FILE, schemaText())
