import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { items, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'
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

async function createScene() {
  const server = await serve((asked) => (asked.page === 2 ? new Promise(() => {}) : pageOf(items(6), asked)))
  return {
    server,
    workspace: createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] }),
  }
}

describe.runIf(isOld()).concurrent('under an older Node', () => {
  const node = OLD_NODE

  it('tells the version', async () => {
    const { workspace } = await createScene()

    const version = await workspace.run(['--version'], { node })

    expect(version).toMatchObject({ code: 0, stderr: '', stdout: `${manifest.version}\n` })
  })

  it('ends with the exit code of the command', async () => {
    const { workspace } = await createScene()

    const unknown = await workspace.run(['snyc'], { node })

    expect(unknown.code).toBe(2)
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('hands %s on, and waits for the end', async (signal, code) => {
    const { server, workspace } = await createScene()
    const sync = workspace.start(['sync'], { node })
    await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)

    sync.kill(signal)
    const ended = await sync.ended

    expect(ended.code).toBe(code)
    expect(workspace.rows('SELECT status FROM sync_runs')).toEqual([{ status: 'interrupted' }])
  })

  it('takes a signal that is sent to the whole process group for one', async () => {
    const { server, workspace } = await createScene()
    const start = workspace.start(['start'], { node })
    const { gone } = await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)
    // With the lock in our hands it cannot end before both signals have come: its own, and the one that is handed on.
    const lock = new Database(workspace.mirror)
    lock.exec('BEGIN IMMEDIATE')

    start.killAll('SIGTERM')
    await gone
    await sleep(300)
    lock.close()

    expect((await start.ended).code).toBe(0)
    expect(workspace.rows('SELECT status FROM sync_runs')).toEqual([{ status: 'interrupted' }])
  })

  it.each(['child_process', '*', 'http'])(
    'starts nothing with NODE_DEBUG=%s, and prints no token',
    async (value) => {
      const { server, workspace } = await createScene()
      const env = { NODE_DEBUG: value, ACME_TOKEN: workspace.secret('1|Secret-of-environment-Kf82hLq0Zx') }

      const sync = await workspace.run(['sync'], { node, env })

      expect(sync.code).toBe(2)
      expect(sync.stderr).toContain('NODE_DEBUG is set')
      expect(workspace.leaks).toEqual([])
      expect(server.asked).toEqual([])
    },
  )

  it('leaves no process behind when it is killed while SQLite computes', async () => {
    const server = await serve((asked) => pageOf(items(2), asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
    await workspace.run(['sync'])
    // A row so long that it is written at once, and after it nothing for ever.
    const endless = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n'
    const sql = `SELECT hex(zeroblob(50000)) AS text UNION ALL SELECT i FROM (${endless}) WHERE i < 0`
    const running = workspace.start(['query', sql, '--format', 'csv'], { node })
    await running.firstLine()

    running.kill('SIGKILL')

    // The pipes that the process shares with its parent close only when it ends.
    expect((await running.ended).signal).toBe('SIGKILL')
  })

  it('leaves no process behind when it is killed', async () => {
    const { server, workspace } = await createScene()
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
