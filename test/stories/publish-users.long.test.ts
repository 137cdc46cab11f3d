import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { items } from '../helpers/list-server.ts'
import type { LogLine } from '../helpers/processes.ts'
import { createScene } from '../helpers/scene.ts'
import { IS_ROOT, runs } from '../helpers/system.ts'

// Whose the published file is, and who can open it. Only root can start processes of other users.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const [SERVICE, NOBODY, GROUP] = [10_001, 65_534, 20_000]

const through = (...options: string[]) => ({ through: ['setpriv', ...options, '--'] })
const as = (uid: number, group = uid) => through(`--reuid=${uid}`, `--regid=${uid}`, `--groups=${group}`)
/** What a hardened service has. */
const withUmask = (mask: string, { through: command = [] as string[] } = {}) => ({
  through: [...command, 'sh', '-c', `umask ${mask}; exec "$@"`, 'sh'],
})

/** A mirror in a folder of the service's user, which publishes outside of it. */
async function createPublishing(settings: object = {}) {
  const publish = 'public/new/copy.db'
  const { workspace } = await createScene({
    list: items(6),
    database: 'data/mirror.db',
    settings: { publish, ...settings },
  })
  fs.chmodSync(workspace.folder, 0o755)
  for (const name of ['data', 'public']) {
    fs.mkdirSync(workspace.file(name))
    fs.chownSync(workspace.file(name), SERVICE, SERVICE)
  }
  const copy = workspace.file(publish)
  /** Owner, group and mode of the folder, the file and its numbers. */
  const rights = () =>
    [path.dirname(copy), copy, `${copy}.json`].map((file) => {
      const { uid, gid, mode } = fs.statSync(file)
      return `${uid}:${gid} ${(mode & 0o777).toString(8)}`
    })
  const query = (user: object) =>
    workspace.run(['query', 'SELECT count(*) AS n FROM orders', '--format', 'csv', '--database', copy], user)
  return { workspace, copy, rights, query }
}

const warnings = (logs: readonly LogLine[]) => logs.filter(({ level }) => level !== 'info')

describe.skipIf(!CAN_BE_OTHERS).concurrent('the published file (needs root)', () => {
  it('can be opened by others where this program has made its folder, whatever umask says', async () => {
    const { workspace, rights, query } = await createPublishing()

    await workspace.run(['sync'], withUmask('077', as(SERVICE)))

    const own = `${SERVICE}:${SERVICE}`
    expect(rights()).toEqual([`${own} 755`, `${own} 644`, `${own} 644`])
    expect(await query(as(NOBODY))).toMatchObject({ code: 0, stdout: 'n\n6\n' })
  })

  it('is for those whom publishMode names', async () => {
    const { workspace, copy, rights, query } = await createPublishing({ publishMode: '0640' })
    await workspace.run(['sync'], withUmask('077', as(SERVICE)))
    fs.chownSync(path.dirname(copy), SERVICE, GROUP)
    fs.chownSync(copy, SERVICE, GROUP)
    const own = `${SERVICE}:${GROUP}`

    for (const command of ['sync', 'sync']) {
      await workspace.run([command], withUmask('077', as(SERVICE, GROUP)))
      expect(rights()).toEqual([`${own} 750`, `${own} 640`, `${own} 640`])
    }

    expect((await query(as(NOBODY, GROUP))).stdout).toBe('n\n6\n')
    expect((await query(as(NOBODY))).code).toBe(4)
  })

  it("has the group of a folder that hands it on, and the mirror's owner though root has made it", async () => {
    const { workspace, rights } = await createPublishing()
    fs.chownSync(workspace.file('public'), SERVICE, GROUP)
    fs.chmodSync(workspace.file('public'), 0o2775)
    await workspace.run(['sync'], as(SERVICE))
    fs.rmSync(workspace.file('public/new'), { recursive: true })

    await workspace.run(['sync'])

    const own = `${SERVICE}:${GROUP}`
    expect(rights()).toEqual([`${own} 755`, `${own} 644`, `${own} 644`])
  })

  it("is replaced by the mirror's owner after root was first", async () => {
    const { workspace, rights } = await createPublishing({ publishMode: '0600' })
    const data = workspace.file('data')
    await workspace.run(['sync'], withUmask('077', as(SERVICE)))
    fs.rmSync(workspace.file('public/new'), { recursive: true })
    await workspace.run(['sync'], withUmask('077'))
    const own = `${SERVICE}:${SERVICE}`
    expect(rights()).toEqual([`${own} 700`, `${own} 600`, `${own} 600`])

    const { code, logs } = await workspace.run(['sync'], as(SERVICE))

    expect([code, warnings(logs)]).toEqual([0, []])
    expect(fs.readdirSync(workspace.file('public/new')).toSorted()).toEqual(['copy.db', 'copy.db.json'])
    expect(fs.readdirSync(data)).toContain('mirror.db')
  })
})
