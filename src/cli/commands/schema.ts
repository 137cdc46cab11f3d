import type { z } from 'zod'
import type { Globals, Runtime } from '../runtime.ts'

/** `schema`: prints a JSON Schema, by which editors know the keys of the configuration, and programs what commands write as JSON. */
export async function run({ stdout }: Runtime, _globals: Globals, name: string): Promise<number> {
  stdout.write(await schemaText(name))
  return 0
}

/** The JSON Schema of this name, as it is printed. */
export async function schemaText(name: string): Promise<string> {
  return `${JSON.stringify(await SCHEMAS[name]?.(), null, 2)}\n`
}

/** By the names that can be typed. Each is loaded only if it is asked for. */
const SCHEMAS: Readonly<Record<string, () => Promise<object>>> = {
  config: async () => (await import('../../config/schema.ts')).editorSchema(),
  check: async () => outputSchema((await import('../../check/finding.ts')).CheckSchema),
  sync: async () => outputSchema((await import('../output/results.ts')).SyncSchema),
  verify: async () => outputSchema((await import('../output/results.ts')).VerifySchema),
  status: async () => outputSchema((await import('../../report/status.ts')).StatusSchema),
}

/** The schema for readers, who must expect further fields. */
async function outputSchema(schema: z.ZodType): Promise<object> {
  const { z: zod } = await import('zod')
  return zod.toJSONSchema(schema, { io: 'input', target: 'draft-7' })
}
