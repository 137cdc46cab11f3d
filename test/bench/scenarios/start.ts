import type { Scenario } from '../bench.ts'
import { BIN, measure } from '../processes.ts'
import { interleaved } from '../rounds.ts'
import { smallMirror } from './small-mirror.ts'

/** What every command costs before it does anything. */
export const start: Scenario = {
  name: 'start',
  run: async (bench) => {
    const mirror = await smallMirror(bench, 1)
    const times = await interleaved(
      bench.sizes.startRounds,
      {
        node: () => msOf(measure(['-e', '0'])),
        version: () => msOf(measure([BIN, '--version'])),
        status: () => msOf(mirror.run(['status'])),
      },
      () => {},
    )
    return [
      { what: '--version', ours: times.version },
      { what: 'status of a small mirror', ours: times.status },
    ].map((measured) => ({
      scenario: 'start',
      unit: 'ms' as const,
      ...measured,
      against: 'node -e 0',
      others: times.node,
    }))
  },
}

async function msOf(measured: Promise<{ ms: number }>): Promise<number> {
  return (await measured).ms
}
