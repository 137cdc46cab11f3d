import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { pageOf, serve } from '../../helpers/list-server.ts'
import { onPostgres } from '../../helpers/on-postgres.ts'
import { openReader, startPostgres } from '../../helpers/postgres.ts'
import type { LogLine } from '../../helpers/processes.ts'
import { IS_ROOT, mustRun, runs } from '../../helpers/system.ts'

// A server on a small disk in memory, which only root may make.

const disk = { folder: '' }
const server = await (canMount()
  ? startPostgres((folder) => {
      mustRun('mount', '-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', folder)
      disk.folder = folder
    })
  : { missing: 'no disk can be mounted here', url: '', stop: async () => {} })
afterAll(async () => {
  if (disk.folder === '') return
  fs.rmSync(filler(), { force: true })
  // It removes what it can; the disk itself goes with its mount.
  await server.stop().catch(() => {})
  if (runs('mountpoint', '-q', disk.folder)) mustRun('umount', '-l', disk.folder)
  fs.rmSync(path.dirname(disk.folder), { recursive: true, force: true })
})

function canMount(): boolean {
  if (!IS_ROOT || process.env.TEST_POSTGRES_URL) return false
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-mount-'))
  const isMounted = runs('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
  if (isMounted) mustRun('umount', folder)
  fs.rmdirSync(folder)
  return isMounted
}

const filler = () => path.join(disk.folder, 'filler')

/** Leaves not a byte of room. */
function fillUp(): void {
  try {
    fs.writeFileSync(filler(), Buffer.alloc(256 * 1024 * 1024, 'x'))
  } catch {
    // That is how it ends.
  }
}

const newItems = () =>
  Array.from({ length: 40 }, (_, index) => ({ id: index + 1, note: randomBytes(15_000).toString('base64') }))

const isFinished = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'
const isOutOfRoom = ({ event, msg }: LogLine) =>
  event === 'mirror_busy' && /has no room on its disk/.test(msg)

describe.skipIf(server.missing !== null)(
  'a worker on a server whose disk is full',
  { timeout: 180_000 },
  () => {
    it('waits for room, says so, and goes on with the page in hand', async () => {
      let list = newItems()
      const api = await serve((asked) => pageOf(list, asked, { perPage: 10 }))
      const mirror = onPostgres(server, api.url, {
        schedule: '* * * * * *',
        refresh: false,
        collections: {
          establishments: false,
          orders: { history: false },
        },
      })
      const worker = mirror.start(['start'])
      await worker.log(isFinished)

      fillUp()
      list = newItems()
      await worker.log(isOutOfRoom)
      const byHand = await mirror.run(['status'])
      const asked = api.asked.length
      fs.rmSync(filler())
      mustRun('mount', '-o', 'remount,size=1g', disk.folder)
      await expect.poll(() => api.asked.length, { timeout: 90_000 }).toBeGreaterThan(asked + 8)

      worker.killAll('SIGTERM')
      const { code, logs } = await worker.ended
      expect(code).toBe(0)
      expect(byHand.code).toBe(0)
      expect(logs.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
      expect(await mirror.run(['sync', '--wait'])).toMatchObject({ code: 0 })
      const rows = await openReader(mirror.address)
      const mirrored = await rows('SELECT _json FROM orders_raw ORDER BY id')
      expect(mirrored.map(({ _json }) => _json)).toEqual(list.map((item) => JSON.stringify(item)))
    })
  },
)
