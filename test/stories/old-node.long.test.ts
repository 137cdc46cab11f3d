import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { items } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'
import { written } from '../helpers/written.ts'

// The command as a system with an older Node runs it: src/bin.js starts the locked one in its place.

const OLD_NODE = '/usr/bin/node'

function isOld(): boolean {
  try {
    const version = execFileSync(OLD_NODE, ['--version'], { encoding: 'utf8' })
    return Number.parseInt(version.slice(1), 10) < 24
  } catch {
    return false
  }
}

/** A list whose second page never comes. */
const createStuck = () =>
  createScene({ list: items(6), instead: ({ page }) => (page === 2 ? new Promise(() => {}) : null) })

describe.runIf(isOld()).concurrent('under an older Node', () => {
  const node = OLD_NODE

  it('tells the version', async () => {
    const { workspace } = await createStuck()

    const version = await workspace.run(['--version'], { node })

    expect(version).toMatchObject({ code: 0, stderr: '', stdout: `${manifest.version}\n` })
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('hands %s on, and waits for the end', async (signal, code) => {
    const { server, workspace } = await createStuck()
    const sync = workspace.start(['sync'], { node })
    await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)

    sync.kill(signal)
    const ended = await sync.ended

    expect(ended.code).toBe(code)
    expect(workspace.rows('SELECT status FROM sync_runs')).toEqual([{ status: 'interrupted' }])
  })

  it.each(['child_process', '*', 'http'])(
    'starts nothing with NODE_DEBUG=%s, and prints no token',
    async (value) => {
      const { server, workspace } = await createStuck()
      const env = { NODE_DEBUG: value, ACME_TOKEN: workspace.secret('1|Secret-of-environment-Kf82hLq0Zx') }

      const sync = await workspace.run(['sync'], { node, env })

      expect(sync.code).toBe(2)
      expect(sync.stderr).toContain('NODE_DEBUG is set')
      expect(workspace.leaks).toEqual([])
      expect(server.asked).toEqual([])
    },
  )

  it('leaves no process behind when it is killed', async () => {
    const { server, workspace } = await createStuck()
    const sync = workspace.start(['sync'], { node })
    const { gone } = await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)

    sync.kill('SIGKILL')

    // The process that asked is gone with its connection; only then do the pipes that it shares close.
    await gone
    await sync.ended
    expect(workspace.rows('SELECT status FROM sync_runs')).toEqual([{ status: 'running' }])
  })
})
