import { afterAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../helpers/postgres.ts'
import { runSeeds } from '../shards.ts'
import { serverEnvironment } from './environment.ts'
import { SCENES_FROM } from './scenes.ts'

/** Seed 20 takes very long: see the README. */
const [FROM, SEEDS] = [41, 40]

/** So often each of these happens in them, at least; less would be a simulation of nothing. */
const FLOORS: Record<string, number> = {
  killed: 15,
  'cut off': 15,
  halted: 8,
  locked: 6,
  'taken over': 15,
  overtaken: 4,
  'walk gone on with': 15,
  'answer 401': 6,
  'answer 503': 5,
  'token replaced': 1,
  signalled: 1,
  resumed: 6,
  '2 processes at once': 15,
  '3 processes at once': 6,
  '2 at work at once': 5,
}

const server = await startPostgres()
afterAll(() => server.stop())
if (server.missing !== null) console.warn(server.missing)

describe.skipIf(server.missing !== null)('workers on a PostgreSQL server', () => {
  it(`keep all promises in ${SEEDS} random histories, in which everything happens often`, async () => {
    const env = serverEnvironment(server.url)
    const { passed, failed, first, counts } = await runSeeds({ from: FROM, seeds: SEEDS, env })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect({ passed, failed }).toEqual({ passed: SEEDS, failed: 0 })
    const rare = Object.entries(FLOORS).filter(([what, floor]) => (counts[what] ?? 0) < floor)
    expect(rare.map(([what, floor]) => `${what}: ${counts[what] ?? 0} of at least ${floor}`)).toEqual([])
  }, 3_600_000)

  it('keep them in short scenes of two workers', async () => {
    const env = serverEnvironment(server.url)
    const { failed, first } = await runSeeds({ from: SCENES_FROM, seeds: 10, env })

    expect(first && `seed ${first.seed}: ${first.complaint}\n${first.story}`).toBeNull()
    expect(failed).toBe(0)
  }, 600_000)
})
