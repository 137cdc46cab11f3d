import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'
import { IS_ROOT, runs } from '../helpers/system.ts'
import { written } from '../helpers/written.ts'

// What others on the machine may not. Only root can start processes of other users.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const GROUP = 20_000

/** A user in that group, who owns nothing else. */
const as = (uid: number) => ({
  through: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, `--groups=${GROUP}`, '--'],
})
const [SERVICE, ANALYST] = [10_001, 10_002]

const ITEMS = items(6)
const onSecondPage = ({ page }: Asked) => page === 2

/** A mirror of the service's user, and a server that keeps the second page behind a door once it is shut. */
async function createMirror() {
  let door = createDoor()
  door.open()
  const { server, workspace, configure } = await createScene({
    list: ITEMS,
    database: 'data/mirror.db',
    instead: async ({ page }) => {
      if (page === 2) await door.opened
      return null
    },
  })
  // The door may be shut for long on a busy machine.
  configure({ api: { baseUrl: server.url, timeout: '10m' } })
  fs.chmodSync(workspace.folder, 0o755)
  fs.mkdirSync(workspace.file('data'))
  fs.chownSync(workspace.file('data'), SERVICE, SERVICE)
  expect((await workspace.run(['sync'], as(SERVICE))).code).toBe(0)

  /** A command of this user that has written the first page and is at work on the job, until the door opens. */
  async function startWorking(args: readonly string[], user: object) {
    door = createDoor()
    const running = workspace.start(args, user)
    await server.arrivals(onSecondPage, server.asked.filter(onSecondPage).length + 1)
    await written(workspace, 2)
    return { running, open: () => door.open() }
  }

  return { workspace, startWorking }
}

function modesOf(...files: string[]): string[] {
  return files.map((file) => (fs.statSync(file).mode & 0o777).toString(8))
}

const BACKFILL = ['backfill', '--org', 'acme']

describe.skipIf(!CAN_BE_OTHERS).concurrent('a mirror of another user (needs root)', () => {
  it('is for its owner alone when it is new, with all that lies beside it', async () => {
    const { workspace, startWorking } = await createMirror()
    const { running, open } = await startWorking(BACKFILL, as(SERVICE))
    const { mirror } = workspace

    const modes = modesOf(mirror, `${mirror}-wal`, `${mirror}-shm`)
    const query = await workspace.run(['query', 'SELECT 1'], as(ANALYST))
    open()
    await running.ended

    expect(modes).toEqual(['600', '600', '600'])
    expect(query.code).toBe(4)
    expect(query.stderr).toMatch(/its owner has not given this user the right/)
  })
})
