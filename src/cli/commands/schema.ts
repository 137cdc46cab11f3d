import { configJsonSchema } from '../../config/json-schema.ts'
import type { Runtime } from '../runtime.ts'

/** `schema`: with it, editors know every key of the configuration. */
export async function run({ stdout }: Runtime): Promise<number> {
  stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
  return 0
}
