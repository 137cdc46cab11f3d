import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { patchedBy } from '../helpers/patch.ts'
import { saysBefore, withConstant } from '../helpers/planted.ts'
import { trickle } from '../sandbox-faults/connection.ts'
import { copyOf, expectWhole, ORDERS } from './crash-scene.ts'
import { type Asked, pageOf, type Reply, serve } from './list-server.ts'
import { createLockScene, isLooking, LOCK_WAIT, LOOKING, type LockedPlace } from './lock-scene.ts'
import type { Ended, LogLine, Running } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// The bound of the promise: a service manager that waits longer before it kills is the rule.
const STOPPED_WITHIN_MS = 5000

const CODES = { SIGTERM: 143, SIGINT: 130, SIGHUP: 129 }
type Signal = keyof typeof CODES

/** Sends the signal and waits for the end. */
async function stop(running: Running, signal: Signal): Promise<Ended & { elapsed: number }> {
  const sent = performance.now()
  running.kill(signal)
  const ended = await running.ended
  return { ...ended, elapsed: performance.now() - sent }
}

/** That the mirror is sound, and a plain sync goes on from it to the list's end. */
async function expectToGoOn(workspace: Workspace): Promise<void> {
  const copy = copyOf(workspace)
  copy.close()
  expect(copy.integrity).toBe('ok')
  const next = await workspace.run(['sync'])
  expect(next.code, next.stderr).toBe(0)
  expectWhole(workspace)
}

type Place = [where: string, place: LockedPlace, instead?: (asked: Asked) => Reply | undefined]

const REGISTERING: Place = [
  'registering who is configured',
  { file: 'src/cli/session.ts', statement: 'await tokens.register(' },
]
const WRITING: Place = [
  'writing a page',
  { file: 'src/sync/walk.ts', statement: 'const result = await handler.handle(', when: 'page.number === 3' },
]

const PERMITS = 'src/api/rate/permits.ts'

const PLACES: Place[] = [
  REGISTERING,
  WRITING,
  ['noting a token', { file: 'src/cli/token-holds.ts', statement: 'await tokens.useToken(' }],
  [
    'taking a job',
    {
      file: 'src/sync/lease/acquire.ts',
      statement: 'const { lease, heldBy, work = null } = await store.acquire(job)',
    },
  ],
  ['beginning a run', { file: 'src/sync/job.ts', statement: 'const { resume, abandon, replace } =' }],
  [
    'writing a pause of the server',
    {
      file: PERMITS,
      statement: "await write('report')",
      when: 'known().closedUntil > now()',
    },
    once({ status: 429, headers: { 'retry-after': '0' }, body: {} }),
  ],
  [
    'taking a permit',
    { file: PERMITS, statement: 'let tried = NOT_TRIED', when: "wanted === 'permit'" },
    limited(),
  ],
  [
    'writing at the end what is not written of the budget',
    { file: PERMITS, statement: "await write('report')", when: 'inFlight === 0 && !isUrgent' },
    limited(),
  ],
  [
    'completing a walk',
    { file: 'src/sync/end-walk.ts', statement: 'const { heldBack } = await store.closeWalk(' },
  ],
  [
    'finishing a run',
    {
      file: 'src/sync/job.ts',
      statement: 'const outcome = runOutcome(result.error, result.heldBack, traffic)',
    },
  ],
  ['letting go of a job', { file: 'src/sync/job.ts', statement: 'await store.release(lease)' }],
]

/** Pages that announce a limit, and what each request leaves of it. */
function limited(): (asked: Asked) => Reply {
  let left = 60
  return (asked) => ({
    ...pageOf(ORDERS, asked),
    headers: { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': String(--left) },
  })
}

/** An answer to the first request for the third page. */
function once(reply: Reply): (asked: Asked) => Reply | undefined {
  let isGiven = false
  return ({ page }) => {
    if (page !== 3 || isGiven) return undefined
    isGiven = true
    return reply
  }
}

/** Without end, so that who waits for it cannot have ended by itself. */
const ANSWERS: [what: string, settings: object, reply: Reply, isWaiting: (line: LogLine) => boolean][] = [
  [
    'a rate limit',
    {},
    { status: 429, headers: { 'retry-after': '600' }, body: {} },
    ({ msg, reason }) => msg === 'waiting' && reason === 'the server asked for a pause',
  ],
  [
    'another try',
    { retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' } },
    { status: 500, body: {} },
    ({ msg }) => msg.endsWith('trying again'),
  ],
  ['an answer that does not end', {}, { fault: trickle }, isAsked],
]

function isAsked({ msg }: LogLine): boolean {
  return msg === 'asked'
}

describe.concurrent('a signal while the server keeps us waiting', () => {
  const SIGNALS = ['SIGHUP', 'SIGTERM', 'SIGHUP'] as const

  it.each(
    ['sync', 'start'].flatMap((args) =>
      ANSWERS.map((one, index) => [SIGNALS[index] ?? 'SIGTERM', args, ...one] as const),
    ),
  )(
    '(%s) ends %s within 5 seconds, and nothing is lost: %s',
    async (signal, args, _what, settings, reply, isWaiting) => {
      const answer = once(reply)
      const server = await serve((asked) => answer(asked) ?? pageOf(ORDERS, asked))
      const workspace = createWorkspace({
        baseUrl: server.url,
        organizations: [organization('acme', 1)],
        ...settings,
      })
      const asks = saysBefore('src/api/client.ts', 'const response = await get(', 'asked', 'page === 3')
      const command = workspace.start([args], { env: patchedBy(asks) })
      await command.log(isWaiting)

      const ended = await stop(command, signal)

      expect(ended).toMatchObject({ code: args === 'start' ? 0 : CODES[signal], signal: null })
      expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
      expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
        { status: 'open', next_page: 3 },
      ])
      await workspace.run(['resume'])
      await expectToGoOn(workspace)
    },
  )
})

describe.concurrent('a signal while another process has the lock', () => {
  it.each(PLACES.map((place, index) => [index % 2 ? 'SIGINT' : 'SIGTERM', ...place] as const))(
    '(%s) ends a sync within 5 seconds, and nothing is lost: %s',
    async (signal, _where, place, instead) => {
      const { workspace, startWaiting, letGo } = await createLockScene(place, instead)
      const sync = await startWaiting(['sync'])

      const ended = await stop(sync, signal)
      letGo()

      expect(ended, ended.stderr).toMatchObject({ code: CODES[signal], signal: null })
      expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
      await expectToGoOn(workspace)
    },
  )

  it.each([REGISTERING, WRITING])('ends start with 0: %s', async (_where, place) => {
    const { workspace, startWaiting, letGo } = await createLockScene(place)
    const start = await startWaiting(['start'])

    const ended = await stop(start, 'SIGTERM')
    letGo()

    expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null })
    expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
    await expectToGoOn(workspace)
  })

  it('lets a sync that writes a hold wait on, and says so; a second one ends it at once', async () => {
    const { workspace, startWaiting, letGo } = await createLockScene(
      { file: 'src/api/token-hold.ts', statement: 'await store.hold(why)' },
      once({ status: 401, body: {} }),
    )
    const sync = await startWaiting(['sync'])
    sync.kill('SIGTERM')
    await sync.log(({ msg }) => /^waiting to write the hold of a refused token.*second signal/.test(msg))

    const ended = await stop(sync, 'SIGTERM')
    letGo()

    expect(ended, ended.stderr).toMatchObject({ code: 143, signal: null })
    expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
    await expectToGoOn(workspace)
  })

  it('ends a sync that writes a hold as soon as that is written', async () => {
    const { server, workspace, startWaiting, letGo } = await createLockScene(
      { file: 'src/api/token-hold.ts', statement: 'await store.hold(why)' },
      once({ status: 401, body: {} }),
    )
    const sync = await startWaiting(['sync'])
    sync.kill('SIGTERM')
    await sync.log(({ msg }) => msg.startsWith('waiting to write the hold of a refused token'))
    letGo()

    expect((await sync.ended).code).toBe(143)
    expect(workspace.rows('SELECT name FROM organizations WHERE held_since IS NOT NULL')).toEqual([
      { name: 'acme' },
    ])
    expect(server.asked.filter(({ page }) => page === 3)).toHaveLength(1)
  })

  it('ends a sync within 5 seconds when it is only opening the mirror, which another makes', async () => {
    const server = await serve((asked) => pageOf(ORDERS, asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
    const maker = new Database(workspace.mirror)
    maker.pragma('application_id = 0x61646d72')
    maker.exec('BEGIN EXCLUSIVE')
    const sync = workspace.start(['sync'], { env: patchedBy(LOOKING) })
    await sync.log(isLooking)

    const ended = await stop(sync, 'SIGINT')
    maker.close()

    expect(ended, ended.stderr).toMatchObject({ code: 130, signal: null })
    expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
    await expectToGoOn(workspace)
  })

  it.each([REGISTERING, WRITING])(
    'and a second one end a sync at once, and nothing is lost: %s',
    async (_where, place) => {
      const { workspace, startWaiting, letGo } = await createLockScene(place)
      const sync = await startWaiting(
        ['sync'],
        // After one signal it would wait for longer than this test may take.
        withConstant(LOCK_WAIT, 'STOPPING_MS', 3_600_000),
        withConstant(LOCK_WAIT, 'PATIENCE_MS', 3_600_000),
        saysBefore('src/main.ts', 'stop.abort(signal)', 'stopping'),
      )
      sync.kill('SIGTERM')
      await sync.log(({ msg }) => msg === 'stopping')

      const ended = await stop(sync, 'SIGINT')
      letGo()

      expect(ended).toMatchObject({ code: 130, signal: null })
      expect(ended.elapsed).toBeLessThan(STOPPED_WITHIN_MS)
      await expectToGoOn(workspace)
    },
  )
})
