import { z } from 'zod'
import { choice, duration, list, mapping, truthValue, urlPath } from './fields.ts'

/** Mirrored unless the file sets them to false. */
export const DEFAULT_COLLECTIONS = ['orders', 'establishments']

const FIELD_TEXT = 'must be a field, or a dotted path to one. Write it like id or customer.id.'
const fieldPath = z
  .string({ error: FIELD_TEXT })
  .regex(/^[^.\p{Cc}]+(?:\.[^.\p{Cc}]+)*$/u, { error: FIELD_TEXT })

const path = urlPath().describe('Path of the list behind baseUrl. Default: /api/v1/admin/NAME')

/** Each is a column of two indexes and a condition of every statement; SQLite allows some hundreds. */
const MOST_KEY_FIELDS = 100

const key = z
  .union(
    [
      fieldPath,
      list(fieldPath, 'fields')
        .min(1, { error: 'must name at least one field. Write id, or the fields that tell two items apart.' })
        .max(MOST_KEY_FIELDS, {
          error: `must name at most ${MOST_KEY_FIELDS} fields. Write only those that tell two items apart.`,
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
// Numbers and truth values are sent as they were typed.
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

const total = choice(['check', 'ignore']).describe(
  'check: meta.total is the number of items, and walks are checked by it; ignore: it is not used',
)

const newest = choice(['auto', 'first', 'last']).describe(
  'The end of the list where new items appear; auto: refreshes learn it',
)

const MAPPING_OR_SWITCH = { error: 'must be a mapping of settings, or false. Write {} for the defaults.' }

/** A collection of every organization, with its defaults; only `path` takes its default from the name. */
const CollectionSchema = mapping({
  path: path.optional(),
  key: key.prefault('id').transform((paths) => (typeof paths === 'string' ? [paths] : paths)),
  filters: filters.prefault({}),
  history: history.default(true),
  ignore: ignore.prefault([]),
  total: total.default('check'),
  newest: newest.default('auto'),
})

/** The overrides of one organization. */
const OverrideSchema = mapping({
  path: path.optional(),
  key: z
    .never({ error: 'is the same for every organization. Move it to collections at the top of the file.' })
    .optional(),
  filters: filters.describe('Instead of the filters of the collection, all of them').optional(),
  history: history.optional(),
  ignore: ignore.optional(),
  total: total.optional(),
  newest: newest.optional(),
})

/** False: not synced. True, null or settings: synced. */
export const CollectionEntry = z.union([truthValue(), z.null(), CollectionSchema], MAPPING_OR_SWITCH)
export const OverrideEntry = z.union([truthValue(), z.null(), OverrideSchema], MAPPING_OR_SWITCH)

type Entry = z.output<typeof CollectionEntry> | undefined
type Override = z.output<typeof OverrideEntry>

/** One list endpoint, with all defaults filled in; durations are milliseconds. */
export type CollectionConfig = Omit<z.output<typeof CollectionSchema>, 'path'> & {
  name: string
  path: string
}

/** A collection of the top of the file, and whether organizations sync it by default. */
export interface DefinedCollection {
  config: CollectionConfig
  enabled: boolean
}

/** Returns the default collections, then those of the file in its order. */
export function defineCollections(entries: Readonly<Record<string, Entry>>): DefinedCollection[] {
  const given = new Map(Object.entries(entries))
  const names = new Set([...DEFAULT_COLLECTIONS, ...given.keys()])
  return [...names].map((name) => {
    const entry = given.get(name)
    const settings = typeof entry === 'object' && entry !== null ? entry : CollectionSchema.parse({})
    return {
      config: { ...settings, name, path: settings.path ?? `/api/v1/admin/${name}` },
      enabled: entry !== false,
    }
  })
}

/** Returns what one organization syncs: the collections that neither it nor the top turns off, with its overrides. */
export function mergeCollections(
  defined: readonly DefinedCollection[],
  overrides: Readonly<Record<string, Override>>,
): CollectionConfig[] {
  const given = new Map(Object.entries(overrides))
  return defined
    .filter(({ config, enabled }) => (given.has(config.name) ? given.get(config.name) !== false : enabled))
    .map(({ config }) => mergeOverride(config, given.get(config.name)))
}

function mergeOverride(config: CollectionConfig, override: Override | undefined): CollectionConfig {
  if (typeof override !== 'object' || override === null) return config
  // Filters are not merged, so that an organization can drop one of the top.
  return { ...config, ...withoutUndefined(override) }
}

/** The keys that are given. */
export function withoutUndefined<T extends object>(given: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  }
}
