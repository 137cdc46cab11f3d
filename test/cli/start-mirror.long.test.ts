import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
import { createLockScene } from './lock-scene.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// What may happen to the mirror under `start`, which runs for weeks.

const ITEMS = items(6)
const EVERY_SECOND = '* * * * * *'

const succeeded = ({ event, status }: LogLine) => event === 'run_finished' && status === 'succeeded'
const failed = ({ error_code: code }: LogLine) => code === 'DATABASE'

async function createScene() {
  const server = await serve((asked) => pageOf(ITEMS, asked))
  const workspace = createWorkspace(
    { baseUrl: server.url, organizations: [organization('acme', 1)], schedule: EVERY_SECOND },
    'data/mirror.db',
  )
  return { server, workspace }
}

function damage(file: string): void {
  const length = fs.statSync(file).size - 4096
  const handle = fs.openSync(file, 'r+')
  fs.writeSync(handle, Buffer.alloc(length, 'x'), 0, length, 4096)
  fs.closeSync(handle)
}

function makeNewer({ mirror }: Workspace): void {
  const newer = new Database(mirror)
  newer.pragma('user_version = 99')
  newer.close()
}

/** Moves all that was written from the log into the file, where the damage is. */
function damageAll({ mirror }: Workspace): void {
  const other = new Database(mirror)
  other.pragma('wal_checkpoint(TRUNCATE)')
  other.close()
  damage(mirror)
}

describe.concurrent('start', () => {
  it.each<[string, (workspace: Workspace) => void, RegExp]>([
    ['moved', ({ mirror }) => fs.renameSync(mirror, `${mirror}.old`), /was deleted or moved away/],
    ['deleted', ({ file }) => fs.rmSync(file('data'), { recursive: true }), /was deleted or moved away/],
    [
      'replaced',
      ({ mirror }) => {
        fs.copyFileSync(mirror, `${mirror}.copy`)
        fs.renameSync(`${mirror}.copy`, mirror)
      },
      /was replaced by another file/,
    ],
    ['emptied', ({ mirror }) => fs.truncateSync(mirror), /was emptied/],
    ['damaged', damageAll, /is damaged/],
    ['migrated by a newer version', makeNewer, /made by a newer admin-mirror/],
    [
      'robbed of its log',
      ({ mirror }) => fs.rmSync(`${mirror}-wal`),
      /mirror\.db-wal was deleted or replaced/,
    ],
    [
      'robbed of its owners',
      ({ mirror }) => fs.rmSync(`${mirror}-owners`, { recursive: true }),
      /-owners.* was deleted/,
    ],
  ])(
    'ends with 4 when the mirror is %s, since only a new process can use it',
    async (_what, change, message) => {
      const { workspace } = await createScene()
      const start = workspace.startHere(['start'])
      await start.log(succeeded)

      change(workspace)
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
      expect(ended.stderr).not.toContain('INTERNAL')
    },
  )

  it('works again in the process that its supervisor makes, where the mirror was deleted', async () => {
    const { workspace } = await createScene()
    const first = workspace.startHere(['start'])
    await first.log(succeeded)
    fs.rmSync(workspace.file('data'), { recursive: true })
    await first.ended

    const second = workspace.startHere(['start'])
    await second.log(succeeded)
    second.kill('SIGTERM')

    expect((await second.ended).code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(ITEMS.length)
  })

  it('stays, and goes on at the next tick, when another program held the lock for too long', async () => {
    const { workspace, clock, lock } = await createLockScene(undefined, { schedule: '* * * * *' })
    const start = workspace.startHere(['start'], { clock })
    await start.log(succeeded)
    lock.take()
    await start.logs(failed, 2)
    lock.letGo()

    const before = workspace.value("SELECT count(*) FROM sync_runs WHERE status = 'succeeded'") as number
    await start.logs(succeeded, before + 1)
    start.kill('SIGTERM')

    expect((await start.ended).code).toBe(0)
  })
})
