import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import type { Fault, Reply } from '../helpers/list-server.ts'
import type { LogLine, RunningCommand } from '../helpers/processes.ts'
import { createScene, createStanding } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'
import { copyOf, expectWhole, ORDERS } from './crash-scene.ts'

// Signals to processes that wait. How soon those for a lock end, wherever they are: lock.test.ts.

/** That the mirror is sound, and a plain sync goes on from it to the list's end. */
async function expectToGoOn(workspace: Workspace): Promise<void> {
  const copy = copyOf(workspace)
  copy.close()
  expect(copy.integrity).toBe('ok')
  const next = await workspace.run(['sync'])
  expect(next.code, next.stderr).toBe(0)
  expectWhole(workspace)
}

/** A byte now and then, and never the last one. */
const trickle: Fault = (response) => {
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** Without end, so that who waits for it cannot have ended by itself. */
const ANSWERS: [
  what: string,
  settings: object,
  reply: Reply,
  isWaiting: ((line: LogLine) => boolean) | null,
][] = [
  [
    'a rate limit',
    {},
    { status: 429, headers: { 'retry-after': '600' }, body: {} },
    ({ event, reason }) => event === 'waiting' && reason === 'the server asked for a pause',
  ],
  [
    'another try',
    { retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' } },
    { status: 500, body: {} },
    ({ msg }) => msg.endsWith('trying again'),
  ],
  ['an answer that does not end', {}, { fault: trickle }, null],
]

/** A list of which the third page is answered so, once. */
async function createWaiting(reply: Reply, settings: object) {
  let isGiven = false
  const { server, workspace } = await createScene({
    list: ORDERS,
    settings,
    instead({ page }) {
      if (page !== 3 || isGiven) return null
      isGiven = true
      return reply
    },
  })
  return { workspace, onThird: server.arrival(({ page }) => page === 3) }
}

async function expectStopped(command: RunningCommand, workspace: Workspace, code: number): Promise<void> {
  expect(await command.ended).toMatchObject({ code, signal: null })
  expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
    { status: 'open', next_page: 3 },
  ])
  expect(workspace.rows('SELECT status, error_code, requests FROM sync_runs LIMIT 1')).toEqual([
    { status: 'interrupted', error_code: 'INTERRUPTED', requests: 3 },
  ])
  await workspace.run(['resume'])
  await expectToGoOn(workspace)
}

describe.concurrent('a signal while the server keeps us waiting', () => {
  const SIGNALS = [
    ['SIGHUP', 129],
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const

  it.each(ANSWERS.map((one, index) => [...(SIGNALS[index] ?? SIGNALS[0]), ...one] as const))(
    '(%s) ends a sync with %i, and nothing is lost: %s',
    async (signal, code, _what, settings, reply, isWaiting) => {
      const { workspace, onThird } = await createWaiting(reply, settings)
      const sync = workspace.start(['sync'])
      await (isWaiting ? sync.log(isWaiting) : onThird)

      sync.kill(signal)

      await expectStopped(sync, workspace, code)
    },
  )
})

describe('a log that nobody reads any more', () => {
  it('stops no sync', async () => {
    const { workspace, running, open } = await createStanding(['sync', '--log-level', 'trace'], {
      start: 'start',
      list: ORDERS,
      page: 3,
    })

    running.closeStderr()
    open()

    expect((await running.ended).code).toBe(0)
    expect(workspace.rows('SELECT status FROM sync_walks')).toEqual([{ status: 'complete' }])
  })
})

describe.concurrent('a signal while another process has the lock', () => {
  it('ends a sync that is only opening the mirror, which another makes', async () => {
    const { server, workspace } = await createScene({ list: ORDERS })
    const maker = new Database(workspace.mirror)
    maker.pragma('application_id = 0x61646d72')
    maker.exec('BEGIN EXCLUSIVE')
    const isLooking = new Promise<void>((resolve) => {
      const end = watchEdges({ failed: ({ file }) => file === workspace.mirror && resolve() })
      onTestFinished(end)
    })
    const sync = workspace.startHere(['sync'])
    await isLooking

    sync.kill('SIGINT')

    expect((await sync.ended).code).toBe(130)
    expect(server.asked).toEqual([])
    maker.close()
    await expectToGoOn(workspace)
  })
})
