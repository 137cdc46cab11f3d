import { z } from 'zod'
import { CollectionEntry } from './collection-schema.ts'
import { cronExpression, duration, filePath, list, timezone, wholeNumber } from './fields.ts'
import { OrganizationSchema } from './organization-schema.ts'
import { api, http, MAPPING, rateLimit, removals, retry } from './section-schemas.ts'

/** Also needed where `publish` is compared with a `database` that the file leaves out. */
export const DATABASE = '../data/mirror.db'

/** A mapping whose keys all have defaults: left out or left empty it is the defaults. */
function section<Section extends z.ZodObject>(object: Section, description: string) {
  return object
    .nullish()
    .transform((given): z.output<Section> => given ?? object.parse({}))
    .describe(description)
}

/** The configuration file. Defaults stand in the schemas and nowhere else. */
export const FileSchema = z
  .strictObject(
    {
      api: api.describe('The API that is mirrored'),
      rateLimit: section(rateLimit, 'How fast requests may be sent'),
      retry: section(retry, 'What to do about faults that pass by themselves'),
      database: filePath().default(DATABASE).describe("The mirror; relative to this file's folder"),
      publish: filePath()
        .nullable()
        .default(null)
        .describe('A copy that any tool can open read-only, made after complete full walks. Default: none'),
      publishEvery: duration().prefault('5m').describe('The copy is made at most so often'),
      schedule: cronExpression().default('*/15 * * * *').describe('When to sync: cron, 5 or 6 fields'),
      timezone: timezone().default('UTC').describe('Time zone of the schedules'),
      concurrency: wholeNumber(1, 100).default(4).describe('Requests in flight at the same time'),
      maxPasses: wholeNumber(1, 10)
        .default(3)
        .describe('Readings from the first page that one walk may make of a list that shifts under it'),
      resumeWithin: duration()
        .prefault('24h')
        .describe('An interrupted walk that stood still longer begins again'),
      removals: section(removals, 'More removals than both in one walk are held back'),
      keepRuns: duration()
        .prefault('90d')
        .describe('For how long lines of sync_runs and closed walks are kept'),
      http: http
        .nullable()
        .default(null)
        .describe('Health, metrics and status over HTTP. Default: no listener'),
      collections: z
        .object({ orders: CollectionEntry.optional(), establishments: CollectionEntry.optional() }, MAPPING)
        .catchall(CollectionEntry)
        .nullable()
        .transform((given) => given ?? {})
        .prefault({})
        .describe(
          'The lists to mirror, for every organization; orders and establishments are there unless false',
        ),
      organizations: list(OrganizationSchema, 'organizations')
        .min(1, { error: 'must name at least one organization. Write one with id, name and token.' })
        .describe('Whose lists are mirrored'),
    },
    MAPPING,
  )
  .meta({ title: 'Configuration of admin-mirror' })

export type FileConfig = z.output<typeof FileSchema>
