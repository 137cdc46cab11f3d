import fs from 'node:fs'
import { createServer } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { createSwitch } from '../helpers/dead-man-switch.ts'
import type { Ended } from '../helpers/processes.ts'
import { ACME, createScene } from '../helpers/scene.ts'
import { IS_ROOT, mustRun, runs } from '../helpers/system.ts'
import type { Workspace } from '../helpers/workspace.ts'

// What a disk without room does to a sync, with real disks: a small one in memory, which only root may make, and a limit
// on the size of files, which SQLite meets as a disk that cannot be written.

const CAN_LIMIT = runs('prlimit', '--version')
const CAN_MOUNT = IS_ROOT && canMount()

/** Twenty pages of two items, each of which takes 20 kB. */
const ITEMS = Array.from({ length: 40 }, (_, index) => ({ id: index + 1, note: 'x'.repeat(20_000) }))

const mounted: string[] = []

afterAll(() => {
  for (const folder of mounted) mustRun('umount', folder)
})

function canMount(): boolean {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-mount-'))
  const isMounted = runs('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
  if (isMounted) mustRun('umount', folder)
  fs.rmdirSync(folder)
  return isMounted
}

/** A workspace whose mirror lies on a disk of its own. */
async function onSmallDisk(size: string) {
  const scene = await createScene({ list: ITEMS, database: 'data/mirror.db' })
  const { workspace } = scene
  const disk = workspace.file('data')
  fs.mkdirSync(disk)
  mustRun('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk)
  mounted.push(disk)
  const makeRoom = () => {
    fs.rmSync(path.join(disk, 'filler'), { force: true })
    mustRun('mount', '-o', 'remount,size=64m', disk)
  }
  return { ...scene, disk, makeRoom }
}

/** Never fires while a test runs, unless it runs at New Year's midnight. */
const YEARLY = { schedule: '0 0 1 1 *', refresh: false }

/** Leaves not a byte of room. */
function fillUp(disk: string): void {
  try {
    fs.writeFileSync(path.join(disk, 'filler'), Buffer.alloc(64 * 1024 * 1024, 'x'))
  } catch {
    // That is how it ends.
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' ? (address?.port ?? 0) : 0
}

function expectRefusal(ended: Ended, message: RegExp): void {
  expect(ended.code).toBe(4)
  expect(ended.stderr).toMatch(message)
  expect(ended.stderr).not.toContain('INTERNAL')
}

/**
 * The next run asks for these pages, and for one again as of any still list; the mirror is whole then. It has a server of its
 * own, since a request that the run before it sent last may come late.
 */
async function expectNextRun(workspace: Workspace, pages: number[]): Promise<void> {
  const { server } = await createScene({ list: ITEMS })
  workspace.configure({ baseUrl: server.url, organizations: [ACME] })

  const next = await workspace.run(['sync'])

  expect(next.code).toBe(0)
  expect(server.asked.map(({ page }) => page)).toEqual([...pages, 7])
  expect(workspace.value('SELECT count(*) FROM orders')).toBe(40)
  expect(workspace.value('SELECT count(DISTINCT id) FROM orders_raw')).toBe(40)
  expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
  expect(workspace.value(`SELECT status FROM sync_walks ORDER BY id DESC`)).toBe('complete')
  expect(workspace.value(`SELECT count(*) FROM sync_runs WHERE status = 'running'`)).toBe(0)
}

const PAGES = Array.from({ length: 20 }, (_, index) => index + 1)

/** A page is all there or not at all, and the checkpoint knows. Returns the pages that are to be asked for. */
function pagesLeft(workspace: Workspace): number[] {
  const [walk] = workspace.rows<{ status: string; next_page: number; pages: number }>(
    'SELECT * FROM sync_walks',
  )
  const pages = Number(walk?.pages)
  expect(walk).toMatchObject({ status: 'open', next_page: pages + 1 })
  expect(pages).toBeGreaterThan(0)
  for (const table of ['orders', 'orders_raw'])
    expect(workspace.value(`SELECT group_concat(id) FROM ${table}`)).toBe(
      Array.from({ length: 2 * pages }, (_, index) => index + 1).join(),
    )
  expect(workspace.value('SELECT count(*) FROM sync_pages')).toBe(pages)
  // The last one again, to see whether the list has moved.
  return PAGES.slice(pages - 1)
}

describe.skipIf(!CAN_MOUNT)('a disk that is full (needs root, and a mount)', () => {
  it('in the middle of a walk, stops it at a checkpoint that the next run goes on from, and the ping names it', async () => {
    const { workspace, configure, makeRoom } = await onSmallDisk('2000k')
    const watch = await createSwitch()
    configure({ ping: watch.url })

    const ended = await workspace.run(['sync', '--log-level', 'trace'])

    expectRefusal(ended, /mirror\.db.* full.*make room.*continues from here/)
    expect(ended.logs.findLast(({ event }) => event !== 'ping_sent')).toMatchObject({
      level: 'error',
      event: 'run_finished',
      status: 'failed',
      error_code: 'DATABASE',
    })
    expect(watch.pings).toMatchObject([{ path: '/switch/start' }, { path: '/switch/fail' }])
    expect(watch.pings.at(-1)?.body).toMatch(/mirror\.db.* full.*make room/)
    makeRoom()
    const left = pagesLeft(workspace)
    expect(workspace.rows('SELECT status, error_code, pages FROM sync_runs')).toEqual([
      { status: 'failed', error_code: 'DATABASE', pages: 21 - left.length },
    ])
    await expectNextRun(workspace, left)
  })

  it('when start begins does not end it: it says so, and begins to read once there is room', async () => {
    const { workspace, configure, disk, makeRoom } = await onSmallDisk('300k')
    fillUp(disk)
    // The address is only logged once there is a mirror to answer from.
    const port = await freePort()
    configure({ ...YEARLY, organizations: [ACME], http: { port } })

    const daemon = workspace.start(['start'])
    const { msg } = await daemon.log(({ event }) => event === 'mirror_unavailable')
    const check = await fetch(`http://127.0.0.1:${port}/check`)
    const health = await fetch(`http://127.0.0.1:${port}/healthz`)

    expect(msg).toMatch(/full.*tried again/)
    expect([check.status, await check.text()]).toEqual([503, expect.stringMatching(/full/)])
    expect(health.status).toBe(200)
    makeRoom()
    await daemon.log(({ event, status }) => event === 'run_finished' && status === 'succeeded')
    daemon.kill('SIGTERM')
    expect(await daemon.ended).toMatchObject({ code: 0 })
  })

  it('is told by every probe alike, and is no trouble of a copy', async () => {
    const { workspace, configure, disk, makeRoom } = await onSmallDisk('64m')
    configure({ http: { port: 0 }, ...YEARLY })
    await workspace.run(['sync'])
    await workspace.run(['snapshot', workspace.file('copy.db')])
    fs.copyFileSync(workspace.file('copy.db'), workspace.file('data/copy.db'))
    const start = workspace.start(['start'])
    const { url } = await start.log(({ event }) => event === 'listening')
    const checked = () =>
      Promise.all(
        [[], ['--database', workspace.mirror], ['--database', workspace.file('data/copy.db')]].map(
          async (more) => (await workspace.run(['status', '--check', ...more])).code,
        ),
      )
    const answer = (name: string) => fetch(new URL(name, String(url)))
    const served = async () => {
      const [ready, check, status] = [
        await answer('readyz'),
        await answer('check'),
        await answer('status.json'),
      ]
      return [ready.status, check.status, ((await status.json()) as Status).check_exit_code]
    }
    // The page's numbers are read at most once a second, less often on a busy machine.
    const serves = (...expected: number[]) => expect.poll(served, { timeout: 30_000 }).toEqual(expected)
    expect(await checked()).toEqual([0, 0, 0])
    await serves(200, 200, 0)

    fillUp(disk)
    expect(await checked()).toEqual([4, 4, 0])
    await serves(503, 503, 4)

    makeRoom()
    await serves(200, 200, 0)
    start.kill('SIGTERM')
    expect((await start.ended).code).toBe(0)
    mustRun('mount', '-o', 'remount,ro', disk)
    expect(await checked()).toEqual([4, 4, 0])
  })
})

/** A sync that may not make a file larger than this, and fails by it. */
async function limited(bytes: number) {
  const { workspace } = await createScene({ list: ITEMS })
  const ended = await workspace.run(['sync'], { through: ['prlimit', `--fsize=${bytes}`] })
  expectRefusal(ended, /mirror\.db cannot be read or written.*ulimit -f/)
  return workspace
}

describe.skipIf(!CAN_LIMIT)('a limit on the size of files (needs prlimit)', () => {
  it('that is met in the middle of a walk stops it at a checkpoint that the next run goes on from', async () => {
    const workspace = await limited(700_000)

    expect(workspace.rows('SELECT error_code FROM sync_runs')).toEqual([{ error_code: 'DATABASE' }])
    await expectNextRun(workspace, pagesLeft(workspace))
  })
})
