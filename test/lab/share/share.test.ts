import { expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { type PlayedStart, playStart, type ShareSetting } from './play-start.ts'

const HOUR = 3_600_000

const SETTING: ShareSetting = {
  organizations: 100,
  pages: 5,
  hours: 4,
  walkEvery: 2,
  requestsPerMinute: 60,
  isAnnounced: true,
  refusals: 0,
}

/** Requests of refreshes in the hour that has most of them. */
function mostInAnHour({ requests }: PlayedStart): number {
  const times = requests.filter(({ reader }) => reader === 'refresh').map(({ at }) => at)
  let first = 0
  const counts = times.map((at, index) => {
    while (at - (times[first] ?? at) >= HOUR) first++
    return index - first + 1
  })
  return Math.max(...counts)
}

/** How often each list was refreshed in the last two hours. */
function timesOf({ refreshes }: PlayedStart, { hours }: ShareSetting): number[] {
  const late = refreshes.filter(({ at }) => at >= (hours - 2) * HOUR)
  return [...Map.groupBy(late, ({ organization }) => organization).values()].map(({ length }) => length)
}

const PLAYED = [
  { what: '100 organizations', isFast: false, setting: SETTING, most: 366, refreshed: [3, 5] },
  {
    isFast: true,
    what: 'a limit that only a 429 tells of',
    setting: { ...SETTING, organizations: 30, walkEvery: 24, requestsPerMinute: 30, isAnnounced: false },
    most: 183,
    // In two hours 360 requests less what an hour may begin with: 5.7 rounds of two each.
    refreshed: [5, 6],
  },
  // What a refresh takes is a mean: of refusals that come by chance there may be more for a while.
  {
    isFast: false,
    what: 'a tenth of the requests refused',
    setting: { ...SETTING, organizations: 30, refusals: 0.1 },
    most: 400,
    refreshed: [8, 12],
  },
]

it.each(PLAYED.filter(({ isFast }) => LONG || isFast))(
  'refreshes of $what use a tenth of the limit and a minute more in any hour, and come equally often',
  async ({ setting, most, refreshed: [least = 0, often = 0] }) => {
    const played = await playStart(setting)

    const times = timesOf(played, setting)
    expect(mostInAnHour(played)).toBeLessThanOrEqual(most)
    expect(times).toHaveLength(setting.organizations)
    expect(Math.min(...times)).toBeGreaterThanOrEqual(least)
    expect(Math.max(...times)).toBeLessThanOrEqual(often)
    // Full walks go on meanwhile.
    expect(played.walks).toHaveLength(Math.ceil(setting.hours / setting.walkEvery) * setting.organizations)
    expect(played.walks.filter(({ succeeded }) => !succeeded)).toEqual([])
  },
  300_000,
)

// Each list is due again after 50 minutes: two rounds in one hour, if all of them refreshed at once, would be 200 requests.
it.runIf(LONG)(
  'refreshes between the pages of walks that follow each other, too, use a tenth of the limit and a minute more',
  async () => {
    const played = await playStart({
      ...SETTING,
      organizations: 50,
      pages: 30,
      walkEvery: 0.02,
      requestsPerMinute: 20,
    })

    expect(mostInAnHour(played)).toBeLessThanOrEqual(122)
    expect(timesOf(played, SETTING)).toHaveLength(50)
    expect(Math.min(...timesOf(played, SETTING))).toBeGreaterThanOrEqual(2)
  },
  300_000,
)
