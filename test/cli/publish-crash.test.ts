import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, describe, expect, it } from 'vitest'
import { type Patch, patchedBy } from '../helpers/patch.ts'
import { DIE, dyingAfter, dyingBefore } from '../helpers/planted.ts'
import { IS_ROOT, mustRun, runs } from '../helpers/system.ts'
import { pageOf, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// What dying processes and full disks do to the published file: the old one stays, whole, and nothing is left that grows.

const PUBLISH = 'src/store/sqlite/publish/publish.ts'
const BUILD = 'src/store/sqlite/publish/build.ts'
const COPY = 'published/copy.db'
const WHOLE = ['copy.db', 'copy.db.json']

const mounted: string[] = []

afterAll(() => {
  for (const folder of mounted) mustRun('umount', folder)
})

function orders(count: number, value: string) {
  return Array.from({ length: count }, (_, index) => ({ id: index + 1, value }))
}

/** A published file of six orders, of a list that has changed since. `disk`: of how many bytes its own disk is. */
async function createScene(disk?: string) {
  const list = { items: orders(6, 'old') }
  const server = await serve((asked) => pageOf(list.items, asked))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    publish: COPY,
  })
  const copy = workspace.file(COPY)
  const folder = path.dirname(copy)
  if (disk !== undefined) {
    fs.mkdirSync(folder)
    mustRun('mount', '-t', 'tmpfs', '-o', `size=${disk}`, 'tmpfs', folder)
    mounted.push(folder)
  }
  await workspace.run(['sync'])
  expect(left(folder)).toEqual(WHOLE)
  list.items = orders(6, 'new')
  return { list, workspace, copy, folder, before: fs.readFileSync(copy) }
}

function left(folder: string): string[] {
  return fs.readdirSync(folder).toSorted()
}

function warnings(logs: readonly LogLine[]): unknown[] {
  return logs.filter(({ level }) => level !== 'info').map(({ level, msg }) => [level, msg])
}

const NOT_PUBLISHED = [['warn', 'not published; the old copy stays, if there is one']]

/** The next sync publishes, and the numbers are those of the file. */
async function expectNextCopy(workspace: Workspace, folder: string): Promise<void> {
  const { code, logs } = await workspace.run(['sync'])
  expect([code, warnings(logs)]).toEqual([0, []])
  expect(left(folder)).toEqual(WHOLE)
  const copy = path.join(folder, 'copy.db')
  const { sha256 } = JSON.parse(fs.readFileSync(`${copy}.json`, 'utf8'))
  expect(sha256).toBe(createHash('sha256').update(fs.readFileSync(copy)).digest('hex'))
  const connection = new Database(copy, { readonly: true })
  expect(connection.prepare('SELECT DISTINCT value FROM orders').pluck().all()).toEqual(['new'])
  connection.close()
}

const MOMENTS: [where: string, patch: Patch][] = [
  ['with an empty file', dyingAfter(PUBLISH, 'sweepUnfinished(leasesFolder(mirror), place.file, own)')],
  ['with the rows in it', dyingBefore(BUILD, "connection.exec('ANALYZE')")],
  ['before the numbers', dyingBefore(PUBLISH, 'fs.writeFileSync(unfinished,')],
  ['before the renames', dyingBefore(PUBLISH, '  if (isPlaced) for (const [from, to] of renames)')],
]

describe.concurrent('a process that is killed while it publishes', () => {
  it.each(MOMENTS)('%s leaves the old file and nothing else', async (_where, patch) => {
    const { workspace, copy, folder, before } = await createScene()

    const { code, logs } = await workspace.run(['sync'], { env: patchedBy(patch) })

    expect([code, warnings(logs)]).toEqual([0, NOT_PUBLISHED])
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    expect(left(folder)).toEqual(WHOLE)
    expect(fs.readdirSync(`${workspace.mirror}-owners`)).toEqual([])
    await expectNextCopy(workspace, folder)
  })

  it('between the two renames leaves numbers that the next copy replaces', async () => {
    const { workspace, folder } = await createScene()

    const dying = patchedBy(dyingAfter(PUBLISH, 'fs.renameSync(from, to)'))
    const { logs } = await workspace.run(['sync'], { env: dying })

    expect(warnings(logs)).toEqual(NOT_PUBLISHED)
    expect(left(folder)).toEqual(WHOLE)
    await expectNextCopy(workspace, folder)
  })

  it.each(MOMENTS)(
    'with the sync that began it, %s, leaves what the next one clears away',
    async (_where, patch) => {
      const { workspace, copy, folder, before } = await createScene()
      // It dies with its parent, which may take a moment.
      const together =
        "{ process.kill(process.ppid, 'SIGKILL'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) }"

      const patched = patchedBy({ ...patch, replace: patch.replace.replace(DIE, together) })
      const { signal } = await workspace.run(['sync'], { env: patched })

      expect(signal).toBe('SIGKILL')
      expect(fs.readFileSync(copy).equals(before)).toBe(true)
      await expectNextCopy(workspace, folder)
    },
  )

  it('by Ctrl-C of a snapshot leaves nothing beside its file', async () => {
    const { workspace, folder } = await createScene()
    const standStill = {
      file: BUILD,
      find: "connection.exec('ANALYZE')",
      replace: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
    }
    const snapshot = workspace.start(['snapshot', 'published/other.db'], { env: patchedBy(standStill) })
    while (left(folder).length === WHOLE.length) await new Promise((resolve) => setTimeout(resolve, 10))

    snapshot.kill('SIGINT')

    expect((await snapshot.ended).code).toBe(130)
    expect(left(folder)).toEqual(WHOLE)
  })
})

const CAN_MOUNT = IS_ROOT && canMount()

function canMount(): boolean {
  const folder = fs.mkdtempSync('/tmp/admin-mirror-mount-')
  const isMounted = runs('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
  if (isMounted) mustRun('umount', folder)
  fs.rmdirSync(folder)
  return isMounted
}

describe.skipIf(!CAN_MOUNT)('a published file on a disk of its own (needs root, and a mount)', () => {
  const filler = Buffer.alloc(40 * 1024 * 1024, 'x')

  it('stays as it is where the disk has no room, and is replaced when there is room', async () => {
    const { workspace, copy, folder, before } = await createScene('96m')
    fs.writeFileSync(path.join(folder, 'filler'), filler)

    const { code, logs } = await workspace.run(['sync'])

    expect([code, warnings(logs)]).toEqual([0, NOT_PUBLISHED])
    expect(logs.find(({ level }) => level === 'warn')?.reason).toMatch(/not room enough.*copy\.db.*make room/)
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    expect(left(folder)).toEqual([...WHOLE, 'filler'])
    fs.rmSync(path.join(folder, 'filler'))
    await expectNextCopy(workspace, folder)
  })

  it('is replaced where what a killed process left fills the disk', async () => {
    const { workspace, folder } = await createScene('96m')
    const lock = '4711-0123456789ab'
    fs.writeFileSync(path.join(`${workspace.mirror}-owners`, lock), '')
    fs.writeFileSync(path.join(folder, `.copy.db.${lock}.unfinished`), filler)

    await expectNextCopy(workspace, folder)
  })

  it('stays as it is, with its numbers, where the disk is full in the middle of the work', async () => {
    const { workspace, copy, folder, before } = await createScene('96m')
    const numbers = fs.readFileSync(`${copy}.json`)
    const fill = {
      file: PUBLISH,
      find: 'fs.writeFileSync(unfinished,',
      replace: `
        try { for (;;) fs.appendFileSync(${JSON.stringify(path.join(folder, 'filler'))}, Buffer.alloc(4096)) } catch {}
        fs.writeFileSync(unfinished,`,
    }

    const { code, logs } = await workspace.run(['sync'], { env: patchedBy(fill) })

    expect([code, warnings(logs)]).toEqual([0, NOT_PUBLISHED])
    expect(logs.find(({ level }) => level === 'warn')?.reason).toMatch(/copy\.db.* full.*make room/)
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    expect(fs.readFileSync(`${copy}.json`).equals(numbers)).toBe(true)
    fs.rmSync(path.join(folder, 'filler'))
    await expectNextCopy(workspace, folder)
  })
})

describe.skipIf(!runs('prlimit', '--version'))('a limit on the size of files (needs prlimit)', () => {
  it('that a copy meets leaves the old one, and is told', async () => {
    const { list, workspace } = await createScene()
    list.items = orders(6, 'new').map((order) => ({ ...order, note: 'x'.repeat(60_000) }))
    await workspace.run(['sync'])
    await workspace.run(['snapshot', 'copies.db'])
    const copy = workspace.file('copies.db')
    const before = fs.readFileSync(copy)

    const through = ['prlimit', `--fsize=${before.length - 100_000}`]
    const { code, stderr } = await workspace.run(['snapshot', 'copies.db'], { through })

    expect(code).toBe(4)
    expect(stderr).toMatch(/copies\.db cannot be written.*ulimit -f/)
    expect(fs.readFileSync(copy).equals(before)).toBe(true)
    expect(left(workspace.folder).filter((name) => name.includes('copies'))).toEqual(['copies.db'])
  })
})
