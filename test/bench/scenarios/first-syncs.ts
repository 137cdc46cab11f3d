import fs from 'node:fs'
import path from 'node:path'
import { gotLoop, httpLoop, upsertLoop } from '../bare-loops.ts'
import type { Bench } from '../bench.ts'
import { createMirror } from '../mirrors.ts'
import type { Measured } from '../processes.ts'
import { interleaved } from '../rounds.ts'
import { whileServing } from '../serving.ts'
import { meanStepOfSlices } from '../statistics.ts'

export interface FirstSyncs {
  /** Of the list. */
  orders: number
  got: Measured[]
  http: Measured[]
  upsert: Measured[]
  /** With the milliseconds a page in each tenth of the walk, by the server's clock. */
  ours: (Measured & { tenths: number[] })[]
}

/** Syncs into an empty mirror, in turn with the bare loops over the same pages: for more than one scenario. */
export function firstSyncs(bench: Bench, gzip: boolean): Promise<FirstSyncs> {
  return bench.shared(`first syncs ${gzip}`, () => {
    const { rounds } = bench.sizes
    const orders = gzip ? bench.sizes.packedOrders : bench.sizes.orders
    return whileServing({ orders, gzip }, async ({ url, list, arrivals }) => {
      const folder = bench.newFolder()
      const pages = { list, orders }
      const options = { peakIn: folder }
      const mirror = createMirror({ folder, url })
      const naive = path.join(folder, 'naive.db')
      // The first requests of a server are its slowest.
      await httpLoop(pages)
      const contenders = {
        got: async () => ({ ...(await gotLoop(pages, options)), tenths: [] }),
        http: async () => ({ ...(await httpLoop(pages, options)), tenths: [] }),
        upsert: async () => {
          fs.rmSync(naive, { force: true })
          return { ...(await upsertLoop(pages, naive, options)), tenths: [] }
        },
        ours: async () => {
          mirror.empty()
          await arrivals()
          const measured = await mirror.sync(orders, options)
          return { ...measured, tenths: meanStepOfSlices(await arrivals(), 10) }
        },
      }
      const results = await interleaved<keyof typeof contenders, Measured & { tenths: number[] }>(
        rounds,
        contenders,
        (round) => bench.tell(`  ${gzip ? 'packed' : 'plain'}, round ${round} of ${rounds}`),
      )
      mirror.empty()
      fs.rmSync(naive)
      return { orders, ...results }
    })
  })
}
