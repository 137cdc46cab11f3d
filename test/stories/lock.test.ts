import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import { createHastyClock } from '../helpers/in-process.ts'
import { type Asked, type Reply, serve } from '../helpers/list-server.ts'
import type { LogLine } from '../helpers/processes.ts'
import { createWorkspace, organization, type Settings } from '../helpers/workspace.ts'
import { expectWhole, limited, someOf } from './crash-scene.ts'

// Another program holds the mirror's lock: every BEGIN IMMEDIATE finds it taken, so says the driver, and time passes by waiting alone. How long
// a transaction waits, and that a signal ends the wait: test/store/sqlite/transaction.test.ts; a lock of a real process: signals.test.ts.

/** How long SQLite itself waits for a lock. */
const SQLITE_WAITS_MS = 100

const NOON = Date.parse('2026-11-20T12:00:00.000Z')

/** A list that announces a limit, and asks once for a pause; or one whose token is refused, with the lock taken meanwhile. */
async function createScene(settings: Partial<Settings> = {}, isRefused = false) {
  const server = await serve((asked) => {
    if (isRefused) lock.takenFrom = 0
    if (isRefused) return { status: 401, body: {} }
    const before = server.asked.slice(0, server.asked.indexOf(asked)).map(({ page }) => page)
    return throttled(asked, before)
  })
  const organizations = [organization('acme', 1)]
  const workspace = createWorkspace({ baseUrl: server.url, organizations, ...settings })
  const clock = createHastyClock(() => NOON)
  const lock = {
    /** Transactions that have begun, or tried to. */
    transactions: 0,
    /** It is taken from the transaction with this number on. */
    takenFrom: Number.POSITIVE_INFINITY,
    takenAt: null as number | null,
    /** Called each time that somebody finds it taken. */
    onLook: (): unknown => undefined,
  }
  const end = watchEdges({
    before({ what, file }) {
      if (file !== workspace.mirror || what !== 'BEGIN IMMEDIATE') return
      if (++lock.transactions < lock.takenFrom) return
      lock.takenAt ??= clock.now()
      clock.advance(SQLITE_WAITS_MS)
      lock.onLook()
      throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
    },
  })
  onTestFinished(end)
  return { server, workspace, clock, lock }
}

function throttled(asked: Asked, before: readonly number[]): Reply {
  return asked.page === 3 && !before.includes(3)
    ? { status: 429, headers: { 'retry-after': '0' }, body: {} }
    : limited(asked, before)
}

/** The numbers of the transactions of a sync that nobody disturbs: the first, and some others. With LONG=1 all. */
let found: Promise<number[]> | null = null
function transactions(): Promise<number[]> {
  found ??= findTransactions()
  return found
}

async function findTransactions(): Promise<number[]> {
  const { workspace, clock, lock } = await createScene()
  expect((await workspace.run(['sync'], { clock })).code).toBe(0)
  const [first = 1, ...others] = Array.from({ length: lock.transactions }, (_, index) => index + 1)
  return [first, ...someOf(others, 2)]
}

/** That a plain sync reads the list to its end, when the lock is free. */
async function expectToGoOn({
  workspace,
  clock,
  lock,
}: Awaited<ReturnType<typeof createScene>>): Promise<void> {
  lock.takenFrom = Number.POSITIVE_INFINITY
  const next = await workspace.run(['sync'], { clock })
  expect(next.code, next.stderr).toBe(0)
  expectWhole(workspace)
}

describe('a lock that another program holds before a transaction', () => {
  it('for longer than 30 seconds makes a sync exit with 4, and nothing is lost', async () => {
    for (const number of await transactions()) {
      const scene = await createScene()
      const { workspace, clock, lock } = scene
      lock.takenFrom = number

      const { code, stderr } = await workspace.run(['sync'], { clock })

      expect(code, `before transaction ${number}: ${stderr}`).toBe(4)
      expect(stderr).toContain('was locked by another process')
      expect(clock.now() - (lock.takenAt ?? 0)).toBeGreaterThan(29_000)
      await expectToGoOn(scene)
    }
  })
})

const succeeded = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

it('a lock that another program holds for too long ends no start, which goes on at the next tick', async () => {
  const { workspace, clock, lock } = await createScene({ schedule: '* * * * *' })
  const start = workspace.startHere(['start'], { clock })
  await start.log(succeeded)
  lock.takenFrom = 0
  await start.logs(({ error_code: code }) => code === 'DATABASE', 2)
  lock.takenFrom = Number.POSITIVE_INFINITY

  const before = workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'") as number
  await start.logs(succeeded, before + 1)
  start.kill('SIGTERM')

  expect((await start.ended).code).toBe(0)
})

const openFiles = (file: string) =>
  fs.readdirSync('/proc/self/fd').filter((fd) => {
    const target = fs.statSync(`/proc/self/fd/${fd}`, { throwIfNoEntry: false })
    return target?.ino === fs.statSync(file).ino
  }).length

it('a start that finds a lock between two steps of opening the mirror leaves none of its tries open', async () => {
  const { workspace, clock, lock } = await createScene()
  await workspace.run(['sync'], { clock })
  // The mirror can be opened; its organizations cannot be written.
  lock.takenFrom = lock.transactions + 2
  let tries = 0
  const manyTries = new Promise<void>((resolve) => {
    lock.onLook = () => ++tries > 1000 && resolve()
  })

  const start = workspace.startHere(['start'], { clock })
  await manyTries
  const open = openFiles(workspace.mirror)
  lock.takenFrom = Number.POSITIVE_INFINITY
  await start.log(succeeded)
  start.kill('SIGTERM')

  expect((await start.ended).code).toBe(0)
  expect(open).toBeLessThan(3)
})
