import { MINUTE, RULES } from '../../api/helpers/budgets.ts'
import { createFixedWindow } from '../../api/helpers/fixed-window.ts'
import { createRandom, simulate } from '../../api/helpers/traffic.ts'
import type { Scenario } from '../bench.ts'
import type { Row } from '../row.ts'

interface Case {
  /** Requests a minute that the server announces. */
  limit: number
  processes: number
  senders: number
}

const CASES: readonly Case[] = [
  { limit: 60, processes: 1, senders: 1 },
  { limit: 300, processes: 1, senders: 8 },
  { limit: 300, processes: 3, senders: 8 },
]

/** How much of a limit is used when there is always something to ask: in made-up time, but through real gates. */
export const budget: Scenario = {
  name: 'budget',
  run: async (bench) => {
    const rows: Row[] = []
    for (const one of CASES) {
      bench.tell(`  ${one.limit} a minute, ${one.processes} processes`)
      rows.push(await shareRow(one, bench.sizes.rounds, bench.sizes.budgetMinutes))
    }
    return rows
  },
}

async function shareRow(one: Case, rounds: number, minutes: number): Promise<Row> {
  const { limit, processes, senders } = one
  const served: number[] = []
  let throttled = 0
  for (let seed = 1; seed <= rounds; seed++) {
    const log = await simulate({
      rules: RULES,
      processes,
      senders,
      duration: minutes * MINUTE,
      random: createRandom(seed),
      latency: [20, 150],
      server: createFixedWindow(limit, { whole: true }),
    })
    served.push(log.served.length)
    throttled += log.throttled
  }
  return {
    scenario: 'budget',
    what: `${minutes} minutes, ${processes} x ${senders} senders`,
    unit: 'requests',
    ours: served,
    against: `${limit} a minute`,
    others: served.map(() => limit * minutes),
    note: `${throttled} times 429 in ${rounds} rounds`,
  }
}
