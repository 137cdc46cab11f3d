import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { IS_ROOT, runs } from '../helpers/processes.ts'
import { createScene } from '../helpers/scene.ts'

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
    ).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/not given this user the right/),
    })
  })
})
