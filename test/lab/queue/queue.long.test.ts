import { afterAll, expect, it } from 'vitest'
import { LONG } from '../../helpers/long.ts'
import { startPostgres } from '../../helpers/postgres-server.ts'
import { play } from './play.ts'
import { settings } from './settings.ts'

const server = await startPostgres()
afterAll(() => server.stop())

// Three times as many lists as two workers take at once. `npm run simulate -- --queue` plays it as large as you like.
const SIZE = { workers: 2, organizations: 750, tokens: 15 }
const PLAYED = settings(SIZE).filter(({ name }) => LONG || name === 'a long list of each token')

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
