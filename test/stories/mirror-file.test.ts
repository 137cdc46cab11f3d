import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import { EVERY_SECOND, sceneTests } from '../helpers/scene.ts'
import type { Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// What every command makes of a mirror that it cannot use: exit code 4, and words. How such a file may be found: test/store/sqlite/open.test.ts;
// what may happen to it while it is used: runner.test.ts beside it.

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
  'start|sync|backfill --org acme|verify|status|export orders --format csv|resume|forget --org acme --yes|snapshot copy.db|query VALUES(1)'

describe('a mirror', () => {
  it('that is of a newer version has every command exit with 4, and send nothing', async ({
    synced: { workspace, server },
  }) => {
    makeNewer(workspace)
    for (const line of EVERY_COMMAND.split('|')) {
      const { code, stderr } = await workspace.run(line.split(' '))
      expect([line, code, stderr]).toEqual([line, 4, expect.stringMatching(/mirror\.db .*newer/)])
    }
    expect(server.asked).toEqual([])
  })

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
