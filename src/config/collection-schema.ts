import { z } from 'zod'
import { findPathProblem } from './addresses.ts'
import { choice, duration, list, truthValue } from './fields.ts'

const FIELD_TEXT = 'must be a field, or a dotted path to one. Write it like id or customer.id.'
const fieldPath = z
  .string({ error: FIELD_TEXT })
  .regex(/^[^.\p{Cc}]+(?:\.[^.\p{Cc}]+)*$/u, { error: FIELD_TEXT })

const path = z
  .string({ error: 'must be a path behind baseUrl. Write it like /api/v1/admin/orders.' })
  .superRefine((text, context) => {
    const problem = findPathProblem(text)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })
  .describe('Path of the list behind baseUrl. Default: /api/v1/admin/NAME')

/** All of them are columns of two indexes, and conditions of each statement; SQLite bears some hundreds. */
const MOST_KEY_FIELDS = 100

const key = z
  .union(
    [
      fieldPath,
      list(fieldPath, 'fields')
        .min(1, { error: 'must name at least one field. Write id, or the fields that tell two items apart.' })
        .max(MOST_KEY_FIELDS, {
          error: `must name at most ${MOST_KEY_FIELDS} fields. Write those alone that tell two items apart.`,
        })
        .refine((paths) => new Set(paths).size === paths.length, {
          error: 'names a field twice. Keep one of the two.',
        }),
    ],
    {
      error:
        'must be a field, a dotted path to one, or a list of them. Write it like id or [order_id, line].',
    },
  )
  .describe(
    'What tells two items apart: a field, a dotted path (customer.id), or a list of them; the same for every organization',
  )

const FILTER_TEXT =
  'must be a text or a number, or a list of them. Write it like "state: paid"; put a word such as null in quotes, and filter[state] as one key in quotes.'
// The file may hold numbers and truth values here, which are sent as they were typed.
const filterText = z.string({ error: FILTER_TEXT }).meta({ type: ['string', 'number', 'boolean'] })
const filters = z
  .record(
    z.string(),
    z.union(
      [filterText, z.array(filterText).min(1, { error: 'must not be an empty list. Remove the filter.' })],
      {
        error: FILTER_TEXT,
      },
    ),
    { error: 'must be a mapping of query parameters. Write each on a line like "state: paid".' },
  )
  .nullable()
  .transform((given) => given ?? {})
  .describe('Sent as query parameters with every request, and checked on every links.next')

const history = z
  .union([truthValue(), duration()], {
    error: 'must be true, false, or a duration with its unit. Write it like 90d.',
  })
  .describe('Keep superseded versions: true, false, or for how long after they ended (90d)')

const ignore = list(fieldPath, 'fields')
  .nullable()
  .transform((given) => given ?? [])
  .describe('Fields (dotted paths) that are not compared: a row in which only these differ is left as it is')

const total = choice(['check', 'ignore']).describe('Whether meta.total can be counted by')

const MAPPING_OR_SWITCH = { error: 'must be a mapping of settings, or false. Write {} for the defaults.' }

/** A collection as every organization has it, with the defaults filled in; `path` has its default from the name. */
export const CollectionSchema = z.strictObject({
  path: path.optional(),
  key: key.prefault('id').transform((paths) => (typeof paths === 'string' ? [paths] : paths)),
  filters: filters.prefault({}),
  history: history.default(true),
  ignore: ignore.prefault([]),
  total: total.default('check'),
})

/** What one organization has otherwise. */
const OverrideSchema = z.strictObject({
  path: path.optional(),
  key: z
    .never({ error: 'is the same for every organization. Move it to collections at the top of the file.' })
    .optional(),
  filters: filters.describe('Instead of the filters of the collection, all of them').optional(),
  history: history.optional(),
  ignore: ignore.optional(),
  total: total.optional(),
})

/** False: not synced; true, nothing or settings: synced. */
export const CollectionEntry = z.union([truthValue(), z.null(), CollectionSchema], MAPPING_OR_SWITCH)
export const OverrideEntry = z.union([truthValue(), z.null(), OverrideSchema], MAPPING_OR_SWITCH)

export type CollectionSettings = z.output<typeof CollectionSchema>
export type Override = z.output<typeof OverrideEntry>
