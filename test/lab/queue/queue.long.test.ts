import { afterAll, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { startPostgres } from '../../helpers/postgres-server.ts'
import { play } from './play.ts'
import { playRefreshes } from './refreshes.ts'
import { refreshSettings, settings } from './settings.ts'

const server = await startPostgres()
afterAll(() => server.stop())

// Three times as many lists as two workers take at once. `npm run simulate -- --queue` plays it as large as you like.
const SIZE = { workers: 2, organizations: 750, tokens: 15 }
const PLAYED = settings(SIZE).filter(({ name }) => LONG || name === 'a long list of each token')

const REFRESHED = LONG
  ? refreshSettings({ workers: 2, organizations: 30, tokens: 2 }, 1.1)
  : refreshSettings({ workers: 2, organizations: 12, tokens: 1 }, 0.4).slice(0, 1)

it.skipIf(server.missing !== null).each(PLAYED.map((setting) => ({ ...setting })))(
  'no token waits for the lists of another: $name',
  { timeout: 300_000 },
  async (setting) => {
    const { wrong, used, firstWaits } = await play(server, setting)

    expect(wrong).toBe(0)
    // All budgets are used at once, until the last list of each.
    expect(Math.min(...used)).toBeGreaterThan(0.8)
    expect(Math.max(...firstWaits)).toBeLessThan(5000)
  },
)

it.skipIf(server.missing !== null).each(REFRESHED)(
  'workers keep to one share of each token, and refresh each list in time: $name',
  { timeout: 600_000 },
  async (setting) => {
    const { most, share, interval, longestGap, starved, walks } = await playRefreshes(server, setting)

    // A minute's share may be used ahead.
    expect(most).toBeLessThanOrEqual(share + share / 60)
    expect(longestGap).toBeLessThan(2 * interval)
    expect(starved).toBe(0)
    // The list that a dead worker read is read by another.
    expect(walks).toBeGreaterThanOrEqual(setting.deathEvery === null ? 0 : setting.lists)
  },
)
