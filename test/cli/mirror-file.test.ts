import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { IS_ROOT, mustRun, runs } from '../helpers/system.ts'
import { type Asked, createDoor, items, pageOf, serve } from './list-server.ts'
import type { Ended } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'
import { written } from './written.ts'

// What may happen to the mirror's file while a sync works on it, and how it may be found.

/** Root may write everywhere. */
const AS_NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--']
const CAN_BE_NOBODY = IS_ROOT && runs('setpriv', '--version')

const ITEMS = items(10)

const onThirdPage = ({ page }: Asked) => page === 3

/** A sync that has written two of five pages and waits for the third, in a folder of its own below the workspace. */
async function syncUnderWay() {
  const door = createDoor()
  const server = await serve(async (asked) => {
    if (asked.page === 3) await door.opened
    return pageOf(ITEMS, asked)
  })
  const workspace = createWorkspace(
    {
      baseUrl: server.url,
      organizations: [organization('acme', 1), organization('globex', 2)],
      concurrency: 1,
    },
    'data/mirror.db',
  )
  const sync = workspace.start(['sync', '--org', 'acme'])
  await server.arrival(onThirdPage)
  await written(workspace, 3)
  return { server, workspace, sync, open: door.open, folder: workspace.file('data') }
}

/** That nothing was asked for behind the page that was in flight while the third one could not be written. */
function expectStopped(asked: readonly Asked[]): void {
  const pages = asked.map(({ page }) => page)
  expect(pages.slice(0, 3)).toEqual([1, 2, 3])
  expect(pages.slice(3).every((page) => page === 4)).toBe(true)
  expect(pages.length).toBeLessThanOrEqual(4)
}

function expectRefusal(ended: Ended, message: RegExp): void {
  expect(ended.code).toBe(4)
  const [line] = ended.logs.filter(({ msg }) => msg.startsWith('run '))
  expect(line).toMatchObject({
    level: 'error',
    error_code: 'DATABASE',
    error_message: expect.stringMatching(message),
  })
  expect(ended.stderr).not.toContain('INTERNAL')
}

describe.concurrent('a mirror that a sync is working on', () => {
  it('is missed when its folder is deleted, and nothing goes on into the void', async () => {
    const { server, workspace, sync, open, folder } = await syncUnderWay()

    fs.rmSync(folder, { recursive: true })
    open()
    const ended = await sync.ended

    expectRefusal(ended, /mirror\.db was deleted or moved away while it was in use.*run the command again/)
    expectStopped(server.asked)
    expect(fs.existsSync(folder)).toBe(false)
    expect((await workspace.run(['sync', '--org', 'acme'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })

  it('is let go of when the files are deleted that tell whose job is whose', async () => {
    const { server, workspace, sync, open } = await syncUnderWay()

    fs.rmSync(`${workspace.mirror}-owners`, { recursive: true })
    open()
    const ended = await sync.ended

    expectRefusal(ended, /mirror\.db-owners.* was deleted.*run the command again/)
    expectStopped(server.asked)
    expect((await workspace.run(['sync', '--org', 'acme'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })

  it('is missed when its folder is moved away, and can be put back', async () => {
    const { workspace, sync, open, folder } = await syncUnderWay()

    fs.renameSync(folder, `${folder}-elsewhere`)
    open()
    const ended = await sync.ended
    fs.renameSync(`${folder}-elsewhere`, folder)

    expectRefusal(ended, /mirror\.db was deleted or moved away.*put it back/)
    // A server of its own, since a request that the first process sent last may come late.
    const next = await serve((asked) => pageOf(ITEMS, asked))
    workspace.configure({ baseUrl: next.url, organizations: [organization('acme', 1)] })
    expect((await workspace.run(['sync', '--org', 'acme'])).code).toBe(0)
    expect(next.asked.map(({ page }) => page)).toEqual([2, 3, 4, 5, 2])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
    expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
  })

  it('is missed when another file is put in its place, and that is left as it is', async () => {
    const { server, workspace, sync, open } = await syncUnderWay()
    const other = workspace.file('other.db')
    new Database(other).exec('CREATE TABLE theirs (id)').close()
    const before = fs.readFileSync(other)

    fs.renameSync(other, workspace.mirror)
    open()
    const ended = await sync.ended

    expectRefusal(ended, /mirror\.db was replaced by another file while it was in use/)
    expectStopped(server.asked)
    expect(fs.readFileSync(workspace.mirror).equals(before)).toBe(true)
  })

  it('stops all further jobs of the command, too', async () => {
    const { server, workspace, sync, open, folder } = await syncUnderWay()
    const both = workspace.start(['sync', '--org', 'globex', '--org', 'acme', '--wait'])
    await server.arrivals(onThirdPage, 2)
    await written(workspace, 3, 2)

    fs.rmSync(folder, { recursive: true })
    open()
    const codes = [(await sync.ended).code, (await both.ended).code]

    expect(codes).toEqual([4, 4])
    expectStopped(server.asked.filter(({ organization: id }) => id === server.asked[0]?.organization))
    expect(server.asked.length).toBeLessThanOrEqual(8)
  })

  it('is read by somebody for long: the log grows, the sync goes on, and the log is gone in the end', async () => {
    const list = Array.from({ length: 2500 }, (_, index) => ({ id: index + 1, note: 'x'.repeat(4000) }))
    const server = await serve((asked) => pageOf(list, asked, { perPage: 25 }))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
    const sync = workspace.start(['sync'])
    await server.arrival(({ page }) => page === 3)
    const reader = new Database(workspace.mirror, { readonly: true })
    reader.exec('BEGIN')
    const seen = reader.prepare('SELECT count(*) FROM orders').pluck()
    const before = seen.get()

    const ended = await sync.ended
    const log = fs.statSync(`${workspace.mirror}-wal`).size
    const after = seen.get()
    reader.close()

    expect(ended.code).toBe(0)
    expect(after).toBe(before)
    expect(log).toBeGreaterThan(20_000_000)
    await workspace.run(['resume'])
    expect(fs.existsSync(`${workspace.mirror}-wal`)).toBe(false)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(2500)
    expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
  })
})

const EVERY_COMMAND = [
  ['start'],
  ['sync'],
  ['backfill', '--org', 'acme'],
  ['verify'],
  ['status'],
  ['query', 'SELECT 1'],
  ['export', 'orders', '--format', 'csv'],
  ['rebuild'],
  ['resume'],
  ['forget', '--org', 'acme', '--yes'],
]

/** A mirror that a sync has filled, and the number of requests that took. */
async function synced() {
  const server = await serve((asked) => pageOf(ITEMS, asked))
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  await workspace.run(['sync'])
  return { server, workspace, asked: server.asked.length }
}

describe.concurrent('a mirror that is found', () => {
  it.each([
    [
      'is no database',
      (file: string) => fs.writeFileSync(file, 'this is no database, and somebody needs it'),
    ],
    [
      'is the database of another program',
      (file: string) => new Database(file).exec('CREATE TABLE theirs (id)').close(),
    ],
    [
      'was made by a newer version',
      (file: string) => {
        const database = new Database(file)
        database.pragma('application_id = 0x61646d72')
        database.pragma('user_version = 9999')
        database.exec('CREATE TABLE later (id)').close()
      },
    ],
    ['is a folder', (file: string) => fs.mkdirSync(file)],
  ])('but %s exits with 4, and is left as it is', async (_, make) => {
    const server = await serve((asked) => pageOf(ITEMS, asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
    make(workspace.mirror)
    const before = bytesOf(workspace.mirror)

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(4)
    expect(sync.stderr).toContain(workspace.mirror)
    expect(bytesOf(workspace.mirror)).toEqual(before)
    expect(server.asked).toEqual([])
  })

  it('but cannot be written in the middle of a sync stops all jobs, and goes before a refusal', async () => {
    const refused = organization('refused', 2)
    const server = await serve((asked) =>
      asked.organization === refused.id ? { status: 403, body: {} } : pageOf(ITEMS, asked),
    )
    const organizations = [organization('acme', 1), refused]
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
    await workspace.run(['sync'])
    workspace.change(`
      CREATE TRIGGER broken BEFORE INSERT ON sync_pages BEGIN SELECT raise(FAIL, 'this disk is broken'); END
    `)
    workspace.configure({ baseUrl: server.url, organizations })

    const sync = await workspace.run(['sync'])

    expect(sync.code).toBe(4)
    expect(sync.logs).toContainEqual(
      expect.objectContaining({ organization: 'acme', error_code: 'DATABASE' }),
    )
  })

  it.each<[string, (file: string) => void]>([
    ['is damaged in the middle', (file) => overwrite(file, Math.floor(fs.statSync(file).size / 2), 20_000)],
    ['breaks off', (file) => fs.truncateSync(file, Math.floor(fs.statSync(file).size / 8192) * 4096)],
  ])('and %s exits with 4, and is left as it is', async (_what, damage) => {
    const { server, workspace, asked } = await synced()
    damage(workspace.mirror)
    const before = fs.readFileSync(workspace.mirror)

    const { code, stderr } = await workspace.run(['sync'])

    expect(code).toBe(4)
    expect(stderr).toMatch(
      /mirror\.db is damaged.*Restore a copy, or move it away and run "admin-mirror sync"/,
    )
    expect(server.asked).toHaveLength(asked)
    expect(fs.readFileSync(workspace.mirror).equals(before)).toBe(true)
  })

  it.skipIf(!CAN_BE_NOBODY)(
    'that may only be read exits with 4, and says what is needed (needs root)',
    async () => {
      const { server, workspace, asked } = await synced()
      fs.chmodSync(workspace.folder, 0o777)
      fs.chmodSync(workspace.mirror, 0o444)

      const { code, stderr } = await workspace.run(['sync'], { through: AS_NOBODY })

      expect(code).toBe(4)
      expect(stderr).toMatch(
        /mirror\.db cannot be written.*this user needs to write to the file and to its folder/,
      )
      expect(server.asked).toHaveLength(asked)
    },
  )

  it.each<[string, (workspace: Workspace) => void, RegExp]>([
    [
      'is a pipe',
      ({ mirror }) => {
        fs.rmSync(mirror)
        mustRun('mkfifo', mirror)
      },
      /mirror\.db is a pipe, where a regular file should be/,
    ],
    [
      'has a pipe for a journal',
      ({ mirror }) => mustRun('mkfifo', `${mirror}-journal`),
      /mirror\.db-journal is a pipe/,
    ],
    [
      'has two names',
      ({ mirror, file }) => fs.linkSync(mirror, file('second.db')),
      /mirror\.db has 2 names \(hard links\).*delete all but one/,
    ],
  ])('and %s exits with 4 from every command, which wait for nothing', async (_what, change, message) => {
    const { server, workspace, asked } = await synced()
    change(workspace)

    const ended = await Promise.all(EVERY_COMMAND.map((args) => workspace.run(args)))

    expect(ended.map(({ code }) => code)).toEqual(EVERY_COMMAND.map(() => 4))
    for (const { stderr } of ended) expect(stderr).toMatch(message)
    expect(server.asked).toHaveLength(asked)
  })

  it('with strange things among its owners, or as the owner of a job, is used like any other', async () => {
    const { workspace } = await synced()
    const owners = `${workspace.mirror}-owners`
    const strangers = ['notes.txt', 'folder', 'pipe', '1-aaaaaaaaaaaa']
    fs.writeFileSync(path.join(owners, 'notes.txt'), 'ours')
    fs.mkdirSync(path.join(owners, 'folder'))
    for (const name of ['pipe', '1-aaaaaaaaaaaa']) mustRun('mkfifo', path.join(owners, name))
    for (const name of strangers) fs.utimesSync(path.join(owners, name), 1e9, 1e9)
    fs.writeFileSync(workspace.file('other.db'), '')
    workspace.change("UPDATE sync_jobs SET owner = '../other.db'")

    const commands = [['status'], ['sync'], ['rebuild'], ['forget', '--org', 'acme', '--yes']]
    const codes = []
    for (const args of commands) codes.push((await workspace.run(args)).code)

    expect(codes).toEqual([0, 0, 0, 0])
    expect(fs.readdirSync(owners).toSorted()).toEqual(strangers.toSorted())
    expect(fs.existsSync(workspace.file('other.db'))).toBe(true)
  })

  it('behind a link is the same mirror, and nothing is put beside the link', async () => {
    const { workspace } = await synced()
    fs.mkdirSync(workspace.file('links'))
    fs.symlinkSync(workspace.mirror, path.join(workspace.file('links'), 'mirror.db'))
    const linked = workspace.file('linked.yaml')
    const config = JSON.parse(fs.readFileSync(workspace.file('admin-mirror.yaml'), 'utf8'))
    fs.writeFileSync(linked, JSON.stringify({ ...config, database: 'links/mirror.db' }))

    const { code } = await workspace.run(['sync', '--config', linked])

    expect(code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(2)
    expect(fs.readdirSync(workspace.file('links'))).toEqual(['mirror.db'])
  })
})

function overwrite(file: string, from: number, length: number): void {
  const handle = fs.openSync(file, 'r+')
  fs.writeSync(handle, Buffer.alloc(length, 'x'), 0, length, from)
  fs.closeSync(handle)
}

function bytesOf(file: string): string {
  return fs.statSync(file).isDirectory() ? 'a folder' : fs.readFileSync(file, 'latin1')
}
