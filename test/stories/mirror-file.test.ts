import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { createStanding, EVERY_SECOND, sceneTests } from '../helpers/scene.ts'
import { mustRun } from '../helpers/system.ts'
import type { Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// What may happen to the mirror's file while a command works on it, and how it may be found: exit code 4, and words. What the store
// makes of each: test/store/sqlite/transaction.test.ts and file/open.test.ts.

function damage({ mirror }: Workspace): void {
  const other = new Database(mirror)
  other.pragma('wal_checkpoint(TRUNCATE)')
  other.close()
  const bytes = fs.readFileSync(mirror)
  fs.writeFileSync(mirror, bytes.fill('x', 4096))
}

function makeNewer({ mirror }: Workspace): void {
  const newer = new Database(mirror)
  newer.pragma('user_version = 999')
  newer.close()
}

describe('a mirror that a sync is working on', () => {
  it.for<[string, (workspace: Workspace) => void, RegExp]>([
    [
      'whose folder is deleted',
      ({ file }) => fs.rmSync(file('data'), { recursive: true }),
      /mirror\.db was deleted or moved away while it was in use.*run the command again/,
    ],
  ])('%s ends it with 4, and nothing goes on into the void', async ([what, change, message]) => {
    const options = { page: 3, list: items(10), database: 'data/mirror.db' }
    const standing = await createStanding(['sync'], options)
    const { workspace, server, running, open } = standing

    change(workspace)
    open()
    const ended = await running.ended

    expect(ended.code).toBe(4)
    expect(ended.logs.find(({ msg }) => msg.startsWith('run '))).toMatchObject({
      level: 'error',
      error_code: 'DATABASE',
      error_message: expect.stringMatching(message),
    })
    // And nothing behind the page that was in flight while the third one could not be written.
    expect([
      [1, 2, 3],
      [1, 2, 3, 4],
    ]).toContainEqual(server.asked.map(({ page }) => page))
    if (what.includes('folder')) expect(fs.existsSync(workspace.file('data'))).toBe(false)
    expect((await workspace.run(['sync'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
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
  ['resume'],
  ['forget', '--org', 'acme', '--yes'],
]

describe('a mirror that is found', () => {
  it.for<[string, (workspace: Workspace) => void, RegExp]>([
    [
      'is no database',
      ({ mirror }) => fs.writeFileSync(mirror, 'somebody needs it'),
      /mirror\.db is no SQLite database/,
    ],
    [
      'is a pipe',
      ({ mirror }) => {
        fs.rmSync(mirror)
        mustRun('mkfifo', mirror)
      },
      /mirror\.db is a pipe or a device, where a regular file should be/,
    ],
    ['was made by a newer version', makeNewer, /mirror\.db .*newer/],
  ])(
    'and %s exits with 4 from every command, which sends nothing and waits for nothing',
    async ([, change, message], { synced }) => {
      const { workspace, server } = synced
      change(workspace)

      for (const args of EVERY_COMMAND) {
        const { code, stderr } = await workspace.run(args)
        expect([args[0], code, stderr]).toEqual([args[0], 4, expect.stringMatching(message)])
      }
      expect(server.asked).toEqual([])
    },
  )
})

describe('start', () => {
  it.override({ options: { settings: { schedule: EVERY_SECOND } } })

  it.for<[string, (workspace: Workspace) => void, RegExp]>([
    ['moved', ({ mirror }) => fs.renameSync(mirror, `${mirror}.old`), /was deleted or moved away/],
    ['damaged', damage, /is damaged/],
    ['migrated by a newer version', makeNewer, /made by a newer admin-mirror/],
  ])(
    'ends with 4 when the mirror is %s, since only a new process can use it',
    async ([, change, message], { scene }) => {
      const start = scene.workspace.startHere(['start'])
      await start.log(({ event, status }) => event === 'run_finished' && status === 'succeeded')

      change(scene.workspace)
      const ended = await start.ended

      expect(ended.code).toBe(4)
      expect(ended.logs).toContainEqual(
        expect.objectContaining({
          level: 'error',
          msg: expect.stringContaining('only a new process'),
          error_code: 'DATABASE',
          error_message: expect.stringMatching(message),
        }),
      )
    },
  )
})
