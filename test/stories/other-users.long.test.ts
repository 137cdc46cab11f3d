import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { IS_ROOT, runs } from '../helpers/processes.ts'
import { ACME, createScene, createStanding } from '../helpers/scene.ts'

// What others on the machine may not. Only root can start processes of other users.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const ANALYST = 10_002
const asAnalyst = { through: ['setpriv', `--reuid=${ANALYST}`, `--regid=${ANALYST}`, '--clear-groups', '--'] }

describe.skipIf(!CAN_BE_OTHERS)('another user (needs root)', () => {
  it('cannot read a new mirror, nor what lies beside it while it is written', async () => {
    const { workspace, running, open } = await createStanding(['sync'], { database: 'data/mirror.db' })
    const { mirror } = workspace
    fs.chmodSync(workspace.folder, 0o755)

    const modes = [mirror, `${mirror}-wal`, `${mirror}-shm`].map((file) => fs.statSync(file).mode & 0o777)
    const query = await workspace.run(['query', 'SELECT 1', '--database', mirror], asAnalyst)
    open()
    await running.ended

    expect(modes).toEqual([0o600, 0o600, 0o600])
    expect(query).toMatchObject({ code: 4, stderr: expect.stringMatching(/not given this user the right/) })
  })
  it("has no configuration that root reads unless it is named: it may send a file that only root can read to that user's server", async () => {
    const { server, workspace, configure } = await createScene()
    fs.writeFileSync(workspace.file('secret'), 'only-root-may-read-this', { mode: 0o600 })
    const { id, name } = ACME
    const home = workspace.file('home')
    const file = path.join(home, 'config/admin-mirror.yaml')
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.chmodSync(workspace.folder, 0o755)
    configure({ organizations: [{ id, name, tokenFile: workspace.file('secret') }] })
    fs.copyFileSync(workspace.file('admin-mirror.yaml'), file)
    for (const one of [home, path.dirname(file), file]) fs.chownSync(one, ANALYST, ANALYST)
    const unnamed = { cwd: home, env: { ADMIN_MIRROR_CONFIG: '' } }

    for (const command of ['check', 'sync', 'status'])
      expect(await workspace.run([command], unnamed)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/belongs to another user.* --config /),
      })
    expect(server.asked).toEqual([])
    expect((await workspace.run(['check', '--config', file], unnamed)).code).toBe(0)
    fs.chownSync(file, 0, 0)
    expect((await workspace.run(['check'], unnamed)).code).toBe(0)
  })

  it('reads no configuration of a third one in a folder for all', async () => {
    const { workspace } = await createScene()
    const shared = workspace.file('shared')
    const file = path.join(shared, 'config/admin-mirror.yaml')
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.chmodSync(workspace.folder, 0o755)
    fs.copyFileSync(workspace.file('admin-mirror.yaml'), file)
    fs.chmodSync(file, 0o644)
    fs.chownSync(file, 10_001, 10_001)
    const { code, stderr } = await workspace.run(['status'], {
      ...asAnalyst,
      cwd: shared,
      env: { ADMIN_MIRROR_CONFIG: '' },
    })

    expect([code, stderr]).toEqual([2, expect.stringMatching(/belongs to another user/)])
  })
})
