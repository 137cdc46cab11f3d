import { describe, expect, it } from 'vitest'
import type { Asked, Reply } from '../helpers/list-server.ts'
import type { LogLine } from '../helpers/processes.ts'
import { expectWhole, someOf } from './crash-scene.ts'
import { createLockScene, type LockScene } from './lock-scene.ts'

// Another program holds the mirror's lock: every BEGIN IMMEDIATE finds it taken (lock-scene.ts). A lock of a real process: signals.test.ts,
// and test/store/sqlite/transaction.test.ts.

/** The numbers of the transactions of a sync that nobody disturbs: the first, and some others. With LONG=1 all. */
let found: Promise<number[]> | null = null
function transactions(): Promise<number[]> {
  found ??= findTransactions()
  return found
}

async function findTransactions(): Promise<number[]> {
  const { workspace, clock, lock } = await createLockScene()
  expect((await workspace.run(['sync'], { clock })).code).toBe(0)
  const [first = 1, ...others] = Array.from({ length: lock.transactions() }, (_, index) => index + 1)
  return [first, ...someOf(others, 3)]
}

/** What the promise allows between a signal and the end. */
const STOPPED_WITHIN_MS = 5000
const SIGNALS = [
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const

/** That a plain sync reads the list to its end, when the lock is free. */
async function expectToGoOn({ workspace, clock, lock }: LockScene): Promise<void> {
  lock.letGo()
  const next = await workspace.run(['sync'], { clock })
  expect(next.code, next.stderr).toBe(0)
  expectWhole(workspace)
}

describe('a lock that another program holds before a transaction of a sync', () => {
  it('is waited for, for less than 30 seconds', async () => {
    for (const number of await transactions()) {
      const { workspace, clock, lock } = await createLockScene()
      lock.onLook((heldMs) => heldMs > 25_000 && lock.letGo())
      lock.take(number)

      const { code, stderr } = await workspace.run(['sync'], { clock })

      expect(code, `before transaction ${number}: ${stderr}`).toBe(0)
      expectWhole(workspace)
    }
  })

  it('for longer makes it exit with 4, and nothing is lost', async () => {
    for (const number of await transactions()) {
      const scene = await createLockScene()
      let heldMs = 0
      scene.lock.onLook((ms) => {
        heldMs = ms
      })
      scene.lock.take(number)

      const { code, stderr } = await scene.workspace.run(['sync'], { clock: scene.clock })

      expect(code, `before transaction ${number}: ${stderr}`).toBe(4)
      expect(stderr).toContain('is locked by another process')
      expect(heldMs).toBeGreaterThan(29_000)
      await expectToGoOn(scene)
    }
  })

  it.each(['sync', 'start'])(
    'ends %s within 5 seconds after a signal, and nothing is lost',
    async (command) => {
      for (const number of await transactions()) {
        const scene = await createLockScene()
        const { clock, lock } = scene
        const [signal, exitCode] = SIGNALS[number % SIGNALS.length] ?? ['SIGTERM', 143]
        const stop = new AbortController()
        let stoppedAt = Number.POSITIVE_INFINITY
        lock.onLook(() => {
          if (stop.signal.aborted) return
          stoppedAt = clock.now()
          stop.abort(signal)
        })
        lock.take(number)

        const { code, stderr } = await scene.workspace.run([command], { clock, signal: stop.signal })

        expect(code, `before transaction ${number}: ${stderr}`).toBe(command === 'start' ? 0 : exitCode)
        expect(clock.now() - stoppedAt).toBeLessThan(STOPPED_WITHIN_MS)
        await expectToGoOn(scene)
      }
    },
  )
})

const succeeded = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'

describe('a lock that another program holds for too long', () => {
  it('ends no start, which goes on at the next tick', async () => {
    const { workspace, clock, lock } = await createLockScene(undefined, { schedule: '* * * * *' })
    const start = workspace.startHere(['start'], { clock })
    await start.log(succeeded)
    lock.take()
    await start.logs(({ error_code: code }) => code === 'DATABASE', 2)
    lock.letGo()

    const before = workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'") as number
    await start.logs(succeeded, before + 1)
    start.kill('SIGTERM')

    expect((await start.ended).code).toBe(0)
  })
})

function refuse({ collection }: Asked): Reply | undefined {
  return collection === 'orders' ? { status: 401, body: {} } : undefined
}

const isWaiting = ({ msg }: { msg: string }) => msg.startsWith('waiting to write the hold')

describe('a lock that is held for longer than we wait, when a token is refused,', () => {
  it.each(['sync', 'start'])('makes %s wait on, so that the next start sends it no more', async (command) => {
    const { server, workspace, clock, lock } = await createLockScene((asked, { take }) => {
      take()
      return refuse(asked)
    })
    const running = workspace.startHere([command], { clock })

    const waiting = await running.log(isWaiting)
    // Two patiences more.
    await new Promise<void>((resolve) => lock.onLook((heldMs) => heldMs > 90_000 && resolve()))
    lock.letGo()
    await running.log(({ msg }) => msg === 'the hold of the refused token is written')
    if (command === 'start') running.kill('SIGTERM')

    expect(waiting).toMatchObject({
      level: 'warn',
      reason: expect.stringContaining('401'),
      msg: expect.stringMatching(/mirror\.db is locked by another process/),
    })
    expect((await running.ended).code).toBe(command === 'start' ? 0 : 3)
    expect(workspace.rows('SELECT name FROM organizations WHERE held_since IS NOT NULL')).toEqual([
      { name: 'acme' },
    ])
    const next = workspace.startHere(['start'], { clock })
    await next.log(({ event }) => event === 'run_not_begun')
    next.kill('SIGTERM')
    await next.ended
    expect(server.asked).toHaveLength(1)
  })
})
