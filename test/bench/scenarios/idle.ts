import type { Bench, Scenario } from '../bench.ts'
import { type BenchMirror, createMirror } from '../mirrors.ts'
import { interleaved } from '../rounds.ts'
import { whileServing } from '../serving.ts'

/** A list of one page: enough to have been synced. */
const ORDERS = 25

/** `start` where nothing is due: from its start until it has stopped, told so as soon as it is up. */
export const idle: Scenario = {
  name: 'idle start',
  run: async (bench) => {
    const { idle: organizations, startRounds } = bench.sizes
    return whileServing({ orders: ORDERS }, async ({ url }) => {
      const one = await syncedMirror(bench, url, 1)
      const many = await syncedMirror(bench, url, organizations)
      const times = await interleaved(
        startRounds,
        { one: () => upAndDown(one), many: () => upAndDown(many) },
        () => {},
      )
      const row = {
        scenario: 'idle start',
        what: `start of ${organizations} organizations of which nothing is due, and its end`,
        unit: 'ms' as const,
        ours: times.many,
        against: 'one organization',
        others: times.one,
      }
      return [row]
    })
  },
}

async function upAndDown(mirror: BenchMirror): Promise<number> {
  const { ms } = await mirror.run(['start'], { stopAfter: '"msg":"started"' })
  return ms
}

async function syncedMirror(bench: Bench, url: string, organizations: number): Promise<BenchMirror> {
  const mirror = createMirror({ folder: bench.newFolder(), url, organizations, concurrency: 16 })
  bench.tell(`  filling a mirror of ${organizations} organizations`)
  await mirror.sync(organizations * ORDERS)
  return mirror
}
