import type { Scenario } from '../bench.ts'
import type { BenchMirror } from '../mirrors.ts'
import { interleaved } from '../rounds.ts'
import { smallMirror } from './small-mirror.ts'

/** `start` where nothing is due: from its start until it has stopped, told so as soon as it is up. */
export const idle: Scenario = {
  name: 'idle start',
  run: async (bench) => {
    const { idle: organizations, startRounds } = bench.sizes
    const one = await smallMirror(bench, 1)
    const many = await smallMirror(bench, organizations)
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
  },
}

async function upAndDown(mirror: BenchMirror): Promise<number> {
  const { ms } = await mirror.run(['start'], { stopAfter: '"msg":"started"' })
  return ms
}
