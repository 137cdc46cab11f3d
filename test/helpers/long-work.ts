import { onTestFinished } from 'vitest'
import { createFileForgetting } from '../../src/store/sqlite/forget.ts'
import { createLeases } from '../../src/store/sqlite/leases.ts'
import { createTransact } from '../../src/store/sqlite/transaction.ts'
import { lockName } from './lock-name.ts'
import type { TestMirror } from './test-mirror.ts'

/** What `forget` does, in another process; `rest` is called between two steps, and may stop them. */
export function createLongWork(
  { connection, clock }: TestMirror,
  rest: (stop: AbortController) => unknown = () => {},
) {
  const stop = new AbortController()
  const sleep = async (ms: number) => {
    await rest(stop)
    await clock.sleep(ms)
  }
  const patience = { now: clock.now, sleep, signal: stop.signal }
  const transact = createTransact({ connection, ...patience })
  return {
    forgetting() {
      const leases = createLeases(connection, lockName(), Date.now)
      onTestFinished(() => leases.close())
      return createFileForgetting({ connection, leases, transact, ...patience })
    },
  }
}
