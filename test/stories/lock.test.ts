import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { createClock } from '../helpers/clock.ts'
import { watchEdges } from '../helpers/edges.ts'
import type { Clock } from '../helpers/in-process.ts'
import { type LogLine, stop } from '../helpers/processes.ts'
import { createScene } from '../helpers/scene.ts'
import { expectWhole, ORDERS } from './crash-scene.ts'

// Another program holds the mirror's lock: every BEGIN IMMEDIATE finds it taken, so says the driver, and time passes by waiting alone. How long
// a transaction waits, and that a signal ends the wait: test/store/sqlite/runner.test.ts.

const succeeded = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

/** `takenAt`: the first statement that finds the mirror locked. */
async function createLocked(takenAt = /^none/) {
  const { workspace } = await createScene({ list: ORDERS, settings: { schedule: '* * * * *' } })
  const { now, advance } = createClock()
  // Its sleeps take no time, and it goes on by them.
  const clock: Clock = {
    now,
    async sleep(ms, signal) {
      await nextTurn(undefined, signal ? { signal } : {})
      advance(ms)
    },
  }
  const lock = { isTaken: false, takenAt }
  const end = watchEdges(({ what, file }) => {
    if (file !== workspace.mirror) return
    lock.isTaken ||= lock.takenAt.test(what)
    if (lock.isTaken && what === 'BEGIN IMMEDIATE')
      throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
  })
  onTestFinished(end)
  const free = () => Object.assign(lock, { isTaken: false, takenAt: /^none/ })
  return { workspace, clock, lock, free }
}

it.each([
  ['from its first statement on', /^/],
  ['once a page is written', /^INSERT INTO sync_pages/],
])(
  'a lock that another program holds makes a sync exit with 4, and nothing is lost: %s',
  async (_, takenAt) => {
    const { workspace, clock, free } = await createLocked(takenAt)

    const { code, stderr } = await workspace.run(['sync'], { clock })

    expect([code, stderr]).toEqual([4, expect.stringContaining('was locked by another process')])
    free()
    expect((await workspace.run(['sync'], { clock })).code).toBe(0)
    expectWhole(workspace)
  },
)

it('a lock that another program holds ends no start, which goes on at the next tick', async () => {
  const { workspace, clock, lock, free } = await createLocked()
  const start = workspace.startHere(['start'], { clock })
  await start.log(succeeded)
  lock.isTaken = true
  await start.log(({ error_code: code }) => code === 'DATABASE', 2)
  free()

  const before = workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'") as number
  await start.log(succeeded, before + 1)
  expect((await stop(start)).code).toBe(0)
})
