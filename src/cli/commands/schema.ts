import type { Globals, Runtime } from '../runtime.ts'

/** `schema`: prints a JSON Schema, by which editors know the keys of the configuration, and programs what `status --json` writes. */
export async function run({ stdout }: Runtime, _globals: Globals, name: string): Promise<number> {
  stdout.write(await schemaText(name))
  return 0
}

/** The JSON Schema of this name, as it is printed. */
export async function schemaText(name: string): Promise<string> {
  const schema = name === 'status' ? await statusSchema() : await configSchema()
  return `${JSON.stringify(schema, null, 2)}\n`
}

async function configSchema(): Promise<object> {
  const { editorSchema } = await import('../../config/schema.ts')
  return editorSchema()
}

/** For readers, who must expect further fields. */
async function statusSchema(): Promise<object> {
  const { z } = await import('zod')
  const { StatusSchema } = await import('../../report/status.ts')
  return z.toJSONSchema(StatusSchema, { io: 'input', target: 'draft-7' })
}
