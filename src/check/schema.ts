import { z } from 'zod'

/** The output of `check --json`: `admin-mirror schema check` prints it as a JSON Schema. */
export const CheckSchema = z
  .object({
    version: z.literal(1).describe('Another number: a field has changed its meaning, or is gone'),
    exit_code: z.int(),
    checks: z.array(
      z.object({
        name: z.string().describe('What was checked: mirror, token acme'),
        state: z.enum(['ok', 'warn', 'fail']),
        message: z.string(),
        cure: z.string().nullable().describe('What to do; null: nothing, or the message says it'),
        exit_code: z.literal([0, 1, 2, 3, 4]).describe('What a run would exit with because of it'),
      }),
    ),
  })
  .meta({ title: 'admin-mirror check --json' })
