import { z } from 'zod'
import { percent, timerDuration, truthValue } from './fields.ts'

/** How a list is kept fresh between full walks. */
export interface RefreshSettings {
  /** Milliseconds between two refreshes. */
  every: number
  /** Percent of the rate limit that the refreshes of all lists with one token may use. */
  share: number
  /** Whether a list is walked at once when far more older rows change than usual. */
  alarm: boolean
}

/** Refreshes of many lists would otherwise follow each other without a pause. */
const SHORTEST_MS = 1000

const every = timerDuration()
  .refine((ms) => ms >= SHORTEST_MS, { error: 'must be at least 1s. Write it like 5m.' })
  .describe('How often the newest end of each list is read')
const share = percent(0.1).describe('Percent of the rate limit that refreshes may use')

const alarm = truthValue().describe(
  'Whether a list is walked at once, once a day at most, when far more older rows change than usual',
)

const Settings = z.strictObject({ every: every.optional(), share: share.optional(), alarm: alarm.optional() })

const DEFAULTS: RefreshSettings = { every: 300_000, share: 10, alarm: true }

/** False: lists are only walked whole. True, null or settings: they are refreshed, too. */
export const RefreshEntry = z
  .union([truthValue(), z.null(), Settings], {
    error: 'must be a mapping of every, share and alarm, or false. Write it like { every: 5m, share: 10 }.',
  })
  .meta({ default: { every: '5m', share: 10, alarm: true } })
  .describe('Reading the newest end of each list between full walks, and older pages within a share')

type Entry = z.output<typeof RefreshEntry> | undefined

/** The settings of an organization: its own, then those for all, then the defaults. */
export function mergeRefresh(forAll: Entry, own: Entry): RefreshSettings | false {
  const entry = own ?? forAll
  if (entry === false) return false
  return { ...DEFAULTS, ...given(forAll), ...given(own) }
}

function given(entry: Entry): Partial<RefreshSettings> {
  if (typeof entry !== 'object' || entry === null) return {}
  const { every: ms, share: percentage, alarm: walks } = entry
  return {
    ...(ms === undefined ? {} : { every: ms }),
    ...(percentage === undefined ? {} : { share: percentage }),
    ...(walks === undefined ? {} : { alarm: walks }),
  }
}
