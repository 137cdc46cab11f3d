import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { IS_ROOT, runs } from '../helpers/processes.ts'
import { ACME, createScene } from '../helpers/scene.ts'

// What others on the machine may not. Only root can start processes of other users. The modes of the files: test/store/sqlite/open.test.ts.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const ANALYST = 10_002
const asAnalyst = { through: ['setpriv', `--reuid=${ANALYST}`, `--regid=${ANALYST}`, '--clear-groups', '--'] }

describe.skipIf(!CAN_BE_OTHERS)('another user (needs root)', () => {
  it('cannot read a new mirror, and is told why', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    fs.chmodSync(workspace.folder, 0o755)

    expect(
      await workspace.run(['query', 'SELECT 1', '--database', workspace.mirror], asAnalyst),
    ).toMatchObject({ code: 4, stderr: expect.stringMatching(/not given this user the right/) })
  })

  it("has no configuration that root or a third one reads unless it is named: it may send a file that only root can read to that user's server", async () => {
    const { server, workspace, configure } = await createScene()
    fs.writeFileSync(workspace.file('secret'), 'only-root-may-read-this', { mode: 0o600 })
    const { id, name } = ACME
    const home = workspace.file('home')
    const file = path.join(home, 'config/admin-mirror.yaml')
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.chmodSync(workspace.folder, 0o755)
    configure({ organizations: [{ id, name, tokenFile: workspace.file('secret') }] })
    fs.copyFileSync(workspace.file('admin-mirror.yaml'), file)
    fs.chmodSync(file, 0o644)
    const unnamed = { cwd: home, env: { ADMIN_MIRROR_CONFIG: '' } }
    const refused = { code: 2, stderr: expect.stringMatching(/belongs to another user.* --config /) }

    fs.chownSync(file, 10_001, 10_001)
    expect(await workspace.run(['status'], { ...unnamed, ...asAnalyst })).toMatchObject(refused)
    for (const one of [home, path.dirname(file), file]) fs.chownSync(one, ANALYST, ANALYST)
    for (const command of ['check', 'sync', 'status'])
      expect(await workspace.run([command], unnamed)).toMatchObject(refused)
    expect(server.asked).toEqual([])
    expect((await workspace.run(['check', '--config', file], unnamed)).code).toBe(0)
    fs.chownSync(file, 0, 0)
    expect((await workspace.run(['check'], unnamed)).code).toBe(0)
  })
})
