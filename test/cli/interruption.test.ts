import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items, type ListServer, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'
import { written } from './written.ts'

const ITEMS = items(10)

interface Scene {
  workspace: Workspace
  server: ListServer
  /** Waits until the third page is asked for and the two in front of it are written; returns the request. */
  stand(): Promise<Asked>
  /** Lets the page that is held back be answered, and all later ones. */
  open(): void
}

/** A list of five pages whose third one is not answered until the door is opened. */
async function createScene(more: object = {}): Promise<Scene> {
  const door = createDoor()
  const server = await serve(async (asked) => {
    if (asked.page === 3) await door.opened
    return pageOf(ITEMS, asked)
  })
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    ...more,
  })
  async function stand(): Promise<Asked> {
    const asked = await server.arrival(({ page }) => page === 3)
    await written(workspace, 3)
    return asked
  }
  return { workspace, server, stand, open: door.open }
}

describe.concurrent('a sync that is killed in the middle', () => {
  it('goes on where it stopped, and has every item once', async () => {
    const { workspace, server, stand, open } = await createScene()
    const sync = workspace.start(['sync'])
    await stand()

    sync.kill('SIGKILL')
    const killed = await sync.ended

    expect(killed).toMatchObject({ code: null, signal: 'SIGKILL' })
    expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
      { status: 'open', next_page: 3 },
    ])
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(4)

    open()
    const asked = server.asked.length
    const again = await workspace.run(['sync', '--log-level', 'trace'])

    expect(again.code).toBe(0)
    // The last page that was written is asked for again, to see whether the list has moved; and so is one at the end.
    expect(server.asked.slice(asked).map(({ page }) => page)).toEqual([2, 3, 4, 5, 2])
    expect(workspace.rows('SELECT id FROM orders ORDER BY id')).toEqual(ITEMS.map(({ id }) => ({ id })))
    expect(workspace.rows('SELECT status, coverage, pages, rows_seen FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'steady', pages: 7, rows_seen: 10 },
    ])
    expect(workspace.rows('SELECT status, error_code, first_page, pages, rows_added FROM sync_runs')).toEqual(
      [
        { status: 'interrupted', error_code: 'INTERRUPTED', first_page: 1, pages: 2, rows_added: 4 },
        { status: 'succeeded', error_code: null, first_page: 3, pages: 5, rows_added: 6 },
      ],
    )
    expect(workspace.value('SELECT integrity_check FROM pragma_integrity_check')).toBe('ok')
  })

  it('has three requests repeated: the last page written, the one being written, and the one in flight', async () => {
    const { workspace, server, stand, open } = await createScene()
    const sync = workspace.start(['sync'])
    await stand()
    // With the lock in our hands the third page cannot be written; the fourth is asked for all the same.
    const lock = new Database(workspace.mirror)
    lock.exec('BEGIN IMMEDIATE')
    open()
    await server.arrival(({ page }) => page === 4)

    sync.kill('SIGKILL')
    await sync.ended
    lock.close()
    const asked = server.asked.map(({ page }) => page)
    const again = await workspace.run(['sync'])

    expect(asked).toEqual([1, 2, 3, 4])
    expect(again.code).toBe(0)
    expect(server.asked.slice(asked.length).map(({ page }) => page)).toEqual([2, 3, 4, 5, 2])
    expect(workspace.rows('SELECT id FROM orders ORDER BY id')).toEqual(ITEMS.map(({ id }) => ({ id })))
    expect(workspace.rows('SELECT status, coverage FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'steady' },
    ])
  })

  it('begins again when it has stood still for longer than resumeWithin', async () => {
    const { workspace, stand, open } = await createScene({ resumeWithin: '1ms' })
    const sync = workspace.start(['sync'])
    await stand()
    sync.kill('SIGKILL')
    await sync.ended

    open()
    await workspace.run(['sync'])

    expect(workspace.rows('SELECT status FROM sync_walks ORDER BY id')).toEqual([
      { status: 'abandoned' },
      { status: 'complete' },
    ])
  })
})

describe.concurrent.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s', (signal, code) => {
  it.each([[['sync']], [['backfill', '--org', 'acme']]])(
    `ends %j with ${code} and keeps the checkpoint`,
    async (args) => {
      const { workspace, stand, open } = await createScene()
      const command = workspace.start([...args, '--log-level', 'trace'])
      await stand()

      command.kill(signal)
      const ended = await command.ended

      expect(ended).toMatchObject({ code, signal: null, stdout: '' })
      expect(ended.logs.filter(({ event }) => event === 'run_finished')).toEqual([
        expect.objectContaining({
          level: 'warn',
          status: 'interrupted',
          error_code: 'INTERRUPTED',
          pages: 2,
        }),
      ])
      expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
        { status: 'open', next_page: 3 },
      ])
      expect(workspace.rows('SELECT status, error_code, requests FROM sync_runs')).toEqual([
        { status: 'interrupted', error_code: 'INTERRUPTED', requests: 3 },
      ])

      open()
      const again = await workspace.run(args)

      expect(again.code).toBe(0)
      expect(workspace.rows('SELECT status, coverage FROM sync_walks')).toEqual([
        { status: 'complete', coverage: 'steady' },
      ])
      expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
    },
  )
})

describe.concurrent('a signal', () => {
  it('goes before what the jobs ended with', async () => {
    const refused = organization('refused', 2)
    const server = await serve((asked) =>
      asked.organization === refused.id ? { status: 403, body: {} } : new Promise(() => {}),
    )
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [organization('acme', 1), refused],
    })
    const sync = workspace.start(['sync'])
    await sync.log((line) => line.error_code === 'FORBIDDEN')
    await server.arrival((asked) => asked.organization !== refused.id)

    sync.kill('SIGTERM')

    expect((await sync.ended).code).toBe(143)
  })

  it('that comes a second time ends the command at once, and nothing is lost', async () => {
    const { workspace, stand, open } = await createScene()
    const sync = workspace.start(['sync'])
    const { gone } = await stand()
    // With the lock in our hands the command can write no end to its run, and would wait for it.
    const lock = new Database(workspace.mirror)
    lock.exec('BEGIN IMMEDIATE')
    sync.kill('SIGTERM')
    await gone

    sync.kill('SIGTERM')
    const ended = await sync.ended
    lock.close()

    expect(ended.code).toBe(143)
    expect(workspace.rows('SELECT status FROM sync_runs')).toEqual([{ status: 'running' }])

    open()
    expect((await workspace.run(['sync'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })
})

describe.concurrent('a log that nobody reads any more', () => {
  it('stops no sync', async () => {
    const { workspace, stand, open } = await createScene()
    const sync = workspace.start(['sync', '--log-level', 'trace'])
    await stand()

    sync.closeStderr()
    open()

    expect((await sync.ended).code).toBe(0)
    expect(workspace.rows('SELECT status FROM sync_walks')).toEqual([{ status: 'complete' }])
  })
})

describe.concurrent('a mirror that cannot be used', () => {
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
  ])('because it %s exits with 4, and is left as it is', async (_, make) => {
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

  it('in the middle of a sync stops all jobs, and goes before a refusal', async () => {
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
})

function bytesOf(file: string): string {
  return fs.statSync(file).isDirectory() ? 'a folder' : fs.readFileSync(file, 'latin1')
}
