import { z } from 'zod'
import { OverrideEntry } from './collection-schema.ts'
import { cronExpression, filePath } from './fields.ts'
import { LONGEST_TOKEN, TOKEN_PATTERN } from './token.ts'

/** Of any version; both cases spelled out, since a JSON Schema has no flag for them. */
export const UUID_PATTERN = /^[\da-fA-F]{8}-(?:[\da-fA-F]{4}-){3}[\da-fA-F]{12}$/

const ID_TEXT = {
  error: 'must be the UUID of the organization. Write it like 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d.',
}
const NAME_TEXT = {
  error:
    'must be a short name for the command line and the logs, without control characters and spaces around it.',
}
const TOKEN_TEXT = {
  error: `must be a token without spaces, line breaks, control characters and letters beyond ASCII. Write it alone, without "Bearer", best as \${NAME} from the environment.`,
}

const LONG_TOKEN_TEXT = {
  abort: true,
  error: `must be a token of at most ${LONGEST_TOKEN} characters. Write it alone; a file goes under tokenFile.`,
}

export const OrganizationSchema = z
  .strictObject(
    {
      id: z.string(ID_TEXT).regex(UUID_PATTERN, ID_TEXT).toLowerCase().describe('UUID of the organization'),
      name: z
        .string(NAME_TEXT)
        .regex(/^(?!\s)[^\p{Cc}]+(?<!\s)$/u, NAME_TEXT)
        .describe('Short name for the command line and the logs; unique'),
      token: z
        .string(TOKEN_TEXT)
        .max(LONGEST_TOKEN, LONG_TOKEN_TEXT)
        .regex(TOKEN_PATTERN, TOKEN_TEXT)
        .meta({ type: ['string', 'number'] })
        .optional()
        .describe(`Access token, best as \${NAME} from the environment; or give tokenFile`),
      tokenFile: filePath().optional().describe('File that holds the access token; read again for each run'),
      schedule: cronExpression().optional().describe('Instead of the schedule for all'),
      collections: z
        .record(z.string(), OverrideEntry, {
          error: 'must be a mapping. Write each collection on a line like "orders: false", indented.',
        })
        .nullable()
        .transform((given) => given ?? {})
        .prefault({})
        .describe(
          'What this organization has otherwise, all but key; a collection set to false is not synced',
        ),
    },
    { error: 'must be a mapping with id, name and token. Write each on a line like "name: acme".' },
  )
  .meta({ oneOf: [{ required: ['token'] }, { required: ['tokenFile'] }] })
