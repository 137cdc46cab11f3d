import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { RESTLESS } from '../helpers/in-process.ts'
import { serve } from '../helpers/list-server.ts'
import { atFreePort } from '../helpers/postgres-server.ts'
import { IS_ROOT, mustRun, runs, stop } from '../helpers/processes.ts'
import { createScene, NEVER } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

// What a disk without room does, with a real one: small and in memory, which only root may make.

/** Twenty pages of two items, each of which takes 20 kB. */
const ITEMS = Array.from({ length: 40 }, (_, index) => ({ id: index + 1, note: 'x'.repeat(20_000) }))
const QUIET = { schedule: NEVER, refresh: false }

const mounted: string[] = []
const canMount = IS_ROOT && runs('unshare', '-m', 'mount', '-t', 'tmpfs', 'tmpfs', os.tmpdir())

afterAll(() => {
  for (const folder of mounted) mustRun('umount', folder)
})

/** A workspace whose mirror lies on a disk of its own. */
async function onSmallDisk(size: string) {
  const scene = await createScene({ list: ITEMS, database: 'data/mirror.db', settings: QUIET })
  const disk = scene.workspace.file('data')
  fs.mkdirSync(disk)
  mustRun('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk)
  mounted.push(disk)
  const filler = path.join(disk, 'filler')
  return {
    ...scene,
    disk,
    /** Leaves not a byte of room. */
    fillUp() {
      expect(() => fs.writeFileSync(filler, Buffer.alloc(64 * 1024 * 1024, 'x'))).toThrow('ENOSPC')
    },
    makeRoom(room: string) {
      fs.rmSync(filler, { force: true })
      mustRun('mount', '-o', `remount,size=${room}`, disk)
    },
  }
}

/** A page is all there or not at all, and the checkpoint knows. Returns how many there are. */
function pagesKept({ rows, value }: Workspace): number {
  const [walk] = rows<{ pages: number }>('SELECT status, next_page, pages FROM sync_walks')
  const pages = walk?.pages ?? 0
  expect(walk).toMatchObject({ status: 'open', next_page: pages + 1 })
  expect(pages).toBeGreaterThan(0)
  for (const table of ['orders', 'orders_raw']) expect(value(`SELECT count(*) FROM ${table}`)).toBe(2 * pages)
  expect(rows('SELECT status, error_code, pages FROM sync_runs')).toEqual([
    { status: 'failed', error_code: 'DATABASE', pages },
  ])
  return pages
}

describe.skipIf(!canMount)('a disk that is full (needs root, and a mount)', () => {
  it('stops a walk at a checkpoint that the next run goes on from; the ping and status --check name it, and a disk that is read only', async () => {
    const { workspace, server, configure, disk, fillUp, makeRoom } = await onSmallDisk('2000k')
    const watch = await serve(() => ({}))
    configure({ ping: `${watch.url}/switch` })

    const { code, stderr } = await workspace.run(['sync'])

    expect(code).toBe(4)
    expect(stderr).toMatch(/mirror\.db.* full.*make room.*continues from here/)
    expect(watch.asked.map(({ path: at }) => at)).toEqual(['/switch/start', '/switch/fail'])
    expect(watch.asked.at(-1)?.body).toMatch(/mirror\.db.* full.*make room/)
    makeRoom('64m')
    const kept = pagesKept(workspace)
    // A request that the first run sent last may come late: at another address the second one's are alone.
    const before = server.asked.length
    expect((await workspace.run(['sync'])).code).toBe(0)
    // The last one again, to see whether the list has moved.
    expect(server.asked.slice(before).map(({ page }) => page)).toContain(kept)
    expect(Math.min(...server.asked.slice(before + 1).map(({ page }) => page))).toBeGreaterThan(6)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(40)
    expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')

    const copy = workspace.file('data/copy.db')
    await workspace.run(['snapshot', copy])
    /** Of the mirror, and of a copy, which nobody writes. */
    const codes = async () => [
      (await workspace.run(['status', '--check'])).code,
      (await workspace.run(['status', '--check', '--database', copy])).code,
    ]
    expect(await codes()).toEqual([0, 0])
    fillUp()
    expect(await codes()).toEqual([4, 0])
    makeRoom('64m')
    mustRun('mount', '-o', 'remount,ro', disk)
    expect(await codes()).toEqual([4, 0])
  })

  it('does not end start, which says so on its port, before it has a mirror and while it reads, until there is room', async () => {
    const { workspace, configure, fillUp, makeRoom } = await onSmallDisk('300k')
    fillUp()
    // The address is only logged once there is a mirror to answer from.
    const port = await atFreePort((one) => one)
    configure({ http: { port } })
    const answer = async (name: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/${name}`)
      return [response.status, await response.text()]
    }

    const daemon = workspace.startHere(['start'], { clock: RESTLESS })
    const { msg } = await daemon.log(({ event }) => event === 'mirror_unavailable')

    expect(msg).toMatch(/full.*tried again/)
    expect(await answer('check')).toEqual([503, expect.stringMatching(/full/)])
    expect(await answer('healthz')).toEqual([200, 'ok\n'])
    makeRoom('2000k')
    await daemon.log(({ event, status }) => event === 'run_finished' && status === 'failed')
    expect(await answer('readyz')).toEqual([503, expect.stringMatching(/mirror\.db is full/)])
    makeRoom('64m')
    await expect.poll(() => answer('readyz'), { timeout: 10_000 }).toEqual([200, 'ok\n'])
    expect((await stop(daemon)).code).toBe(0)
  })
})
