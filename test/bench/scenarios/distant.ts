import { gotLoop, NAMES } from '../bare-loops.ts'
import type { Scenario } from '../bench.ts'
import { createMirror } from '../mirrors.ts'
import { interleaved } from '../rounds.ts'
import { whileServing } from '../serving.ts'

/** A first sync from a server that takes its time, as all real ones do. */
export const distant: Scenario = {
  name: 'latency',
  run: async (bench) => {
    const { distantOrders: orders, latencyMs, rounds } = bench.sizes
    return whileServing({ orders, latencyMs }, async ({ url, list }) => {
      const mirror = createMirror({ folder: bench.newFolder(), url })
      const { ours, got } = await interleaved(
        rounds,
        {
          got: () => gotLoop({ list, orders }),
          ours: () => {
            mirror.empty()
            return mirror.sync(orders)
          },
        },
        (round) => bench.tell(`  round ${round} of ${rounds}`),
      )
      const row = {
        scenario: 'latency',
        what: `first sync of ${orders.toLocaleString('en')} orders, ${latencyMs} ms away`,
        unit: 'ms' as const,
        ours: ours.map(({ ms }) => ms),
        against: NAMES.got,
        others: got.map(({ ms }) => ms),
      }
      return [row]
    })
  },
}
