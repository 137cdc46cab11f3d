import { NAMES } from '../bare-loops.ts'
import type { Scenario } from '../bench.ts'
import type { Row } from '../row.ts'
import { firstSyncs } from './first-syncs.ts'

/** A first sync without latency, when all that counts is what a page costs. */
export const firstSync: Scenario = {
  name: 'first sync',
  run: async (bench) => {
    const rows: Row[] = []
    for (const gzip of [false, true]) {
      const { ours, orders, ...bare } = await firstSyncs(bench, gzip)
      for (const name of ['got', 'http', 'upsert'] as const) {
        rows.push({
          scenario: 'first sync',
          what: `${orders.toLocaleString('en')} orders, ${gzip ? 'gzip' : 'no gzip'}`,
          unit: 'ms',
          ours: ours.map(({ ms }) => ms),
          against: NAMES[name],
          others: bare[name].map(({ ms }) => ms),
        })
      }
    }
    return rows
  },
}
