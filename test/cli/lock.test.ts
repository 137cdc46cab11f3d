import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { withConstant } from '../helpers/planted.ts'
import { expectWhole } from './crash-scene.ts'
import { type Asked, createDoor, items, pageOf, type Reply, serve } from './list-server.ts'
import { createLockScene, isLooking, LOCK_WAIT } from './lock-scene.ts'
import { createWorkspace, organization } from './workspace.ts'

// Somebody else writes to the mirror for a moment: longer than SQLite itself waits here, shorter than the 30 seconds
// after which it cannot be used. Whether the moment is long enough to be met does not decide whether a test passes.
const MOMENT = 500

/** Answers the first request so, while another program holds the mirror's lock for a moment. */
async function lockedWhile(
  first: (asked: Asked) => Reply,
  after: (asked: Asked) => Reply = (asked) => pageOf(items(4), asked),
) {
  const server = await serve((asked) => {
    if (server.asked.length > 1) return after(asked)
    const lock = new Database(workspace.mirror)
    lock.exec('BEGIN IMMEDIATE')
    void sleep(MOMENT).then(() => lock.close())
    return first(asked)
  })
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    collections: { orders: {}, establishments: {} },
    concurrency: 1,
  })
  return { server, workspace, sync: await workspace.run(['sync', '--log-level', 'trace']) }
}

describe.concurrent('a lock that another program holds for a moment', () => {
  it('is waited for when a token is refused, which is remembered', async () => {
    const { server, workspace, sync } = await lockedWhile(
      () => ({ status: 401, body: {} }),
      () => ({
        status: 401,
        body: {},
      }),
    )

    expect(sync.code).toBe(3)
    expect(server.asked).toHaveLength(1)
    expect(workspace.rows('SELECT name FROM organizations WHERE held_since IS NOT NULL')).toEqual([
      { name: 'acme' },
    ])
    expect(sync.stderr).not.toContain('INTERNAL')
  })

  it('is waited for when the server asks for a pause', async () => {
    const { workspace, sync } = await lockedWhile(() => ({
      status: 429,
      headers: { 'retry-after': '0' },
      body: {},
    }))

    expect(sync.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })

  it('is waited for when a page is written', async () => {
    const { workspace, sync } = await lockedWhile((asked) => pageOf(items(4), asked))

    expect(sync.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)
  })
})

const REGISTERING = { file: 'src/cli/session.ts', statement: 'await tokens.register(' }
const WRITING = {
  file: 'src/sync/walk.ts',
  statement: 'const result = await handler.handle(',
  when: 'page.number === 3',
}

function refuse({ collection }: Asked): Reply | undefined {
  return collection === 'orders' ? { status: 401, body: {} } : undefined
}

const REFUSED = { file: 'src/api/token-hold.ts', statement: 'await store.hold(why)' }

describe.concurrent('a lock that is held for longer than we wait, when a token is refused,', () => {
  it.each(['sync', 'start'])('makes %s wait on, so that the next start sends it no more', async (command) => {
    const { server, workspace, startWaiting, letGo } = await createLockScene(REFUSED, refuse)
    const requests = () => server.asked.filter(({ path }) => path !== '/lock')
    const running = await startWaiting([command], withConstant(LOCK_WAIT, 'PATIENCE_MS', 500))

    const waiting = await running.log(({ msg }) => msg.startsWith('waiting to write the hold'))
    // Two patiences more.
    await running.logs(isLooking, 20)
    letGo()
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
    const next = workspace.start(['start'])
    await next.log(({ event }) => event === 'run_not_begun')
    next.kill('SIGTERM')
    await next.ended
    expect(requests()).toHaveLength(1)
  })

  it('stops the other jobs with 4 when these can wait no longer, and the hold is written all the same', async () => {
    const isLocked = createDoor()
    const { server, workspace, startWaiting, letGo } = await createLockScene(REFUSED, (asked) => {
      // A page comes only once it cannot be written any more.
      return refuse(asked) ?? isLocked.opened.then(() => undefined)
    })
    void server.arrival(({ path }) => path === '/lock').then(isLocked.open)
    workspace.configure({
      baseUrl: server.url,
      organizations: [organization('acme', 1), organization('globex', 2)],
      collections: { orders: {}, establishments: {} },
    })
    const sync = await startWaiting(['sync'], withConstant(LOCK_WAIT, 'PATIENCE_MS', 500))
    await sync.log(({ error_code }) => error_code === 'DATABASE')
    letGo()

    expect((await sync.ended).code).toBe(4)
    expect(workspace.value('SELECT count(*) FROM organizations WHERE held_since IS NOT NULL')).toBe(2)
  })
})

describe.concurrent('a lock that another program holds', () => {
  it.each([
    ['registering who is configured', REGISTERING],
    ['writing a page', WRITING],
  ])('for several seconds is waited for: %s', async (_where, place) => {
    const { workspace, startWaiting, letGo } = await createLockScene(place)
    const sync = await startWaiting(['sync'])

    // Each look takes a tenth of a second at least.
    await sync.logs(isLooking, 30)
    letGo()

    expect((await sync.ended).code).toBe(0)
    expectWhole(workspace)
  })

  it.each([
    ['registering who is configured', REGISTERING],
    ['writing a page', WRITING],
  ])('for longer than we wait makes a sync exit with 4, and nothing is lost: %s', async (_where, place) => {
    const { workspace, startWaiting, letGo } = await createLockScene(place)
    const sync = await startWaiting(['sync'], withConstant(LOCK_WAIT, 'PATIENCE_MS', 500))

    const ended = await sync.ended
    letGo()

    expect(ended.code).toBe(4)
    expect(ended.stderr).toContain('is locked by another process')
    expect((await workspace.run(['sync'])).code).toBe(0)
    expectWhole(workspace)
  })
})
