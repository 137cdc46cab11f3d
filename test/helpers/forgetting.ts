import { onTestFinished } from 'vitest'
import { createForgetting } from '../../src/store/core/forget.ts'
import { runnerOn } from '../../src/store/sqlite/runner.ts'
import { testLeases } from './leases.ts'
import type { TestMirror } from './test-mirror.ts'

/** What `forget` does, in another process; `rest` is called between two steps, and may stop them. */
export function forgetting({ connection, clock }: TestMirror, rest: (stop: AbortController) => unknown) {
  const stop = new AbortController()
  const sleep = async (ms: number) => {
    await rest(stop)
    await clock.sleep(ms)
  }
  const runner = runnerOn(connection, { ...clock, sleep, signal: stop.signal })
  const leases = testLeases(runner)
  onTestFinished(() => leases.close())
  return createForgetting(runner, leases)
}
