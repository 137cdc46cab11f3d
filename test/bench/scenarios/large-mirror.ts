import { gotLoop } from '../bare-loops.ts'
import type { Bench } from '../bench.ts'
import { type BenchMirror, createMirror } from '../mirrors.ts'
import type { Measured } from '../processes.ts'
import { whileServing } from '../serving.ts'
import { meanStepOfSlices } from '../statistics.ts'

export interface LargeMirror {
  mirror: BenchMirror
  /** There is room for more in it. */
  folder: string
  /** The sync that filled it. */
  first: Measured & { tenths: number[] }
  /** The loop of got over the same pages. */
  got: Measured
}

/** A mirror of one organization's list as long as they come. Filling it takes minutes, so it is filled once. */
export function largeMirror(bench: Bench): Promise<LargeMirror> {
  return bench.shared('large mirror', () => {
    const orders = bench.sizes.large?.orders ?? 0
    bench.tell(`  filling a mirror with ${orders.toLocaleString('en')} orders`)
    return whileServing({ orders, onDemand: true }, async ({ url, list, arrivals }) => {
      const folder = bench.newFolder()
      const mirror = createMirror({ folder, url })
      const got = await gotLoop({ list, orders }, { peakIn: folder })
      await arrivals()
      const measured = await mirror.sync(orders, { peakIn: folder })
      return { mirror, folder, got, first: { ...measured, tenths: meanStepOfSlices(await arrivals(), 10) } }
    })
  })
}
