import type { Bench } from '../bench.ts'
import { type BenchMirror, createMirror } from '../mirrors.ts'
import { whileServing } from '../serving.ts'

/** A list of one page: enough to have been synced. */
const ORDERS = 25

/** A mirror in which nothing is left to do, for what asks no server. */
export function smallMirror(bench: Bench, organizations: number): Promise<BenchMirror> {
  return bench.shared(`small mirror ${organizations}`, () =>
    whileServing({ orders: ORDERS }, async ({ url }) => {
      const mirror = createMirror({ folder: bench.newFolder(), url, organizations, concurrency: 16 })
      bench.tell(`  filling a mirror of ${organizations} organizations`)
      await mirror.sync(organizations * ORDERS)
      return mirror
    }),
  )
}
