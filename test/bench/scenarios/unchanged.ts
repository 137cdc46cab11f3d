import { gotLoop, type List, NAMES } from '../bare-loops.ts'
import type { Bench, Scenario } from '../bench.ts'
import { type BenchMirror, createMirror, framesOf } from '../mirrors.ts'
import { pageCount } from '../pages.ts'
import { interleaved } from '../rounds.ts'
import type { Row } from '../row.ts'
import { whileServing } from '../serving.ts'

/** A walk over a list that is in the mirror already: what every sync but the first is, mostly. */
export const unchanged: Scenario = {
  name: 'unchanged',
  run: async (bench) => {
    const orders = bench.sizes.unchangedOrders
    return whileServing({ orders }, async ({ url, list }) => {
      const mirror = createMirror({ folder: bench.newFolder(), url })
      await mirror.sync(orders)
      const pages = { list, orders }
      const rows = [await timeRow(bench, mirror, pages), await framesRow(mirror, pages)]
      mirror.empty()
      return rows
    })
  },
}

async function timeRow({ sizes, tell }: Bench, mirror: BenchMirror, pages: List): Promise<Row> {
  const { ours, got } = await interleaved(
    sizes.rounds,
    { got: () => gotLoop(pages), ours: () => mirror.sync(pages.orders) },
    (round) => tell(`  round ${round} of ${sizes.rounds}`),
  )
  return {
    scenario: 'unchanged',
    what: `sync of the same ${pages.orders.toLocaleString('en')} orders again`,
    unit: 'ms',
    ours: ours.map(({ ms }) => ms),
    against: NAMES.got,
    others: got.map(({ ms }) => ms),
  }
}

/** Frames are the same each time: once is enough. */
async function framesRow(mirror: BenchMirror, { orders }: List): Promise<Row> {
  const frames = await framesOf(mirror.file, () => mirror.sync(orders))
  return {
    scenario: 'unchanged',
    what: 'what it writes to the log',
    unit: 'frames a page',
    ours: [frames / pageCount(orders)],
    // The naive upsert is no measure: it writes nothing, and so knows nothing of what it has read.
    against: 'the least that a commit writes',
    others: [1],
    note: 'one round',
  }
}
