import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { mustRun } from '../helpers/processes.ts'
import { createStanding, EVERY_SECOND, sceneTests } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// What may happen to the mirror's file while a command works on it, and how it may be found: exit code 4, and words. What the store
// makes of each: test/store/sqlite/runner.test.ts and open.test.ts.

function damage({ mirror, change }: Workspace): void {
  change('PRAGMA wal_checkpoint(TRUNCATE)')
  fs.writeFileSync(mirror, fs.readFileSync(mirror).fill('x', 4096))
}

function makeNewer({ mirror }: Workspace): void {
  const newer = new Database(mirror)
  newer.pragma('user_version = 999')
  newer.close()
}

const EVERY_COMMAND =
  'start|sync|backfill --org acme|verify|status|export orders --format csv|resume|forget --org acme --yes'.split(
    '|',
  )

describe('a mirror', () => {
  it('whose folder is deleted while a sync works on it ends that with 4, and nothing goes on into the void', async () => {
    const options = { page: 3, list: items(10), database: 'data/mirror.db' }
    const { workspace, server, running, open } = await createStanding(['sync'], options)

    fs.rmSync(workspace.file('data'), { recursive: true })
    open()
    const ended = await running.ended

    expect(ended.code).toBe(4)
    expect(ended.stderr).toMatch(/mirror\.db was deleted or moved away while it was in use.*run the command/)
    // And nothing behind the page that was in flight while the third one could not be written.
    expect(server.asked.length).toBeLessThan(5)
    expect(fs.existsSync(workspace.file('data'))).toBe(false)
    expect((await workspace.run(['sync'])).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })

  it.for<[string, (workspace: Workspace) => void, RegExp]>([
    ['no database', ({ mirror }) => fs.writeFileSync(mirror, 'mine'), /mirror\.db is no SQLite database/],
    [
      'a pipe',
      ({ mirror }) => {
        fs.rmSync(mirror)
        mustRun('mkfifo', mirror)
      },
      /mirror\.db is a pipe or a device, where a regular file should be/,
    ],
    ['of a newer version', makeNewer, /mirror\.db .*newer/],
  ])(
    'that is %s has every command exit with 4, send nothing and wait for nothing',
    async ([, change, message], { synced: { workspace, server } }) => {
      change(workspace)
      for (const args of [...EVERY_COMMAND.map((line) => line.split(' ')), ['query', 'SELECT 1']]) {
        const { code, stderr } = await workspace.run(args)
        expect([args[0], code, stderr]).toEqual([args[0], 4, expect.stringMatching(message)])
      }
      expect(server.asked).toEqual([])
    },
  )

  it.for<[string, (workspace: Workspace) => void, RegExp]>([
    ['moved', ({ mirror }) => fs.renameSync(mirror, `${mirror}.old`), /was deleted or moved away/],
    ['damaged', damage, /is damaged/],
    ['migrated by a newer version', makeNewer, /made by a newer admin-mirror/],
  ])(
    'that is %s ends start with 4, since only a new process can use it',
    async ([, change, message], { scene: { workspace, configure } }) => {
      configure({ schedule: EVERY_SECOND })
      const start = workspace.startHere(['start'])
      await start.log(({ event, status }) => event === 'run_finished' && status === 'succeeded')

      change(workspace)
      const ended = await start.ended

      expect(ended.code).toBe(4)
      expect(ended.logs).toContainEqual(
        expect.objectContaining({
          level: 'error',
          msg: expect.stringContaining('only a new process'),
          error_message: expect.stringMatching(message),
        }),
      )
    },
  )
})
