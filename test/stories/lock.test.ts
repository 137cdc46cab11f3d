import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { createClock } from '../helpers/clock.ts'
import { watchEdges } from '../helpers/edges.ts'
import type { Clock } from '../helpers/in-process.ts'
import type { LogLine } from '../helpers/processes.ts'
import { createScene } from '../helpers/scene.ts'
import { expectWhole, ORDERS } from './crash-scene.ts'

// Another program holds the mirror's lock: every BEGIN IMMEDIATE finds it taken, so says the driver, and time passes by waiting alone. How long
// a transaction waits, and that a signal ends the wait: test/store/sqlite/runner.test.ts.

const succeeded = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

/** Its sleeps take no time, and it goes on by them. */
function createHastyClock(): Clock & { advance(ms: number): void } {
  const { now, advance } = createClock()
  return {
    now,
    advance,
    async sleep(ms, signal) {
      await nextTurn(undefined, signal ? { signal } : {})
      advance(ms)
    },
  }
}

/** How long SQLite itself waits for a lock. */
const SQLITE_WAITS_MS = 100

/** The lock is taken from the transaction with the number `takenFrom` on. */
async function createLocked() {
  const { workspace } = await createScene({ list: ORDERS, settings: { schedule: '* * * * *' } })
  const clock = createHastyClock()
  const lock = { transactions: 0, takenFrom: Number.POSITIVE_INFINITY, takenAt: 0 }
  const end = watchEdges(({ what, file }) => {
    if (file !== workspace.mirror || what !== 'BEGIN IMMEDIATE') return
    if (++lock.transactions < lock.takenFrom) return
    lock.takenAt ||= clock.now()
    clock.advance(SQLITE_WAITS_MS)
    throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
  })
  onTestFinished(end)
  const free = () => {
    lock.takenFrom = Number.POSITIVE_INFINITY
  }
  return { workspace, clock, lock, free }
}

it('a lock that another program holds for longer than 30 seconds makes a sync exit with 4, and nothing is lost', async () => {
  const undisturbed = await createLocked()
  await undisturbed.workspace.run(['sync'], { clock: undisturbed.clock })
  const last = undisturbed.lock.transactions
  for (const number of [1, Math.ceil(last / 2), last - 1]) {
    const { workspace, clock, lock, free } = await createLocked()
    lock.takenFrom = number

    const { code, stderr } = await workspace.run(['sync'], { clock })

    expect(code, `before transaction ${number}: ${stderr}`).toBe(4)
    expect(stderr).toContain('was locked by another process')
    expect(clock.now() - lock.takenAt).toBeGreaterThan(29_000)
    free()
    expect((await workspace.run(['sync'], { clock })).code).toBe(0)
    expectWhole(workspace)
  }
})

it('it ends no start, which goes on at the next tick', async () => {
  const { workspace, clock, lock, free } = await createLocked()
  const start = workspace.startHere(['start'], { clock })
  await start.log(succeeded)
  lock.takenFrom = 0
  await start.logs(({ error_code: code }) => code === 'DATABASE', 2)
  free()

  const before = workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'") as number
  await start.logs(succeeded, before + 1)
  start.kill('SIGTERM')

  expect((await start.ended).code).toBe(0)
})
