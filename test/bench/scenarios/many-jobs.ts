import type { Bench, Scenario } from '../bench.ts'
import { createMirror } from '../mirrors.ts'
import { pageCount } from '../pages.ts'
import { interleaved } from '../rounds.ts'
import { whileServing } from '../serving.ts'

/** Many jobs at the same time, which share out what one alone waits for. */
export const manyJobs: Scenario = {
  name: 'many jobs',
  run: async (bench) => {
    const { rounds, latencyMs, busy } = bench.sizes
    const { organizations, concurrency } = busy
    // Where requests shared out well, both would take as long, and the start would be as large a part of it.
    const alone = Math.ceil((organizations * busy.orders) / concurrency)
    return whileServing({ orders: alone, latencyMs }, async (one) =>
      whileServing({ orders: busy.orders, latencyMs }, async (many) => {
        const rates = await interleaved(
          rounds,
          {
            one: rateOf(bench, { url: one.url, organizations: 1, orders: alone }),
            many: rateOf(bench, { url: many.url, organizations, orders: busy.orders }),
          },
          (round) => bench.tell(`  round ${round} of ${rounds}`),
        )
        const row = {
          scenario: 'many jobs',
          what: `${organizations} organizations, ${concurrency} requests at the same time, ${latencyMs} ms away`,
          unit: 'pages/s' as const,
          ours: rates.many,
          against: 'one organization',
          others: rates.one,
          note: 'the more the better',
        }
        return [row]
      }),
    )
  },
}

/** Makes the contender that syncs these organizations into an empty mirror; it tells pages of the lists a second. */
function rateOf(
  bench: Bench,
  list: { url: string; organizations: number; orders: number },
): () => Promise<number> {
  const { url, organizations, orders } = list
  const { concurrency } = bench.sizes.busy
  const mirror = createMirror({ folder: bench.newFolder(), url, concurrency, organizations })
  return async () => {
    mirror.empty()
    const { ms } = await mirror.sync(organizations * orders)
    return (organizations * pageCount(orders) * 1000) / ms
  }
}
