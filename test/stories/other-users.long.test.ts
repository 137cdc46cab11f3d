import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { IS_ROOT, runs } from '../helpers/processes.ts'
import { createStanding } from '../helpers/scene.ts'

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
})
