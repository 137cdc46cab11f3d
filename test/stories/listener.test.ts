import fs from 'node:fs'
import Database from 'better-sqlite3'
import { expect, onTestFinished, vi } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import { items, serve } from '../helpers/list-server.ts'
import { stop } from '../helpers/processes.ts'
import { ACME, GLOBEX, NEVER, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// The listener of a real start, on a real mirror. What it answers, and to whom: test/listener.

const list = items(6).map((item) => ({ ...item, note: 'Data-of-an-item' }))
const settings = { schedule: NEVER, refresh: false, http: { port: 0 } }
it.override({ options: { list, settings } })

const PATHS = ['', 'healthz', 'readyz', 'metrics', 'status.json', 'check']

/** Waits for an answer: what the listener answers is kept for a moment, on a busy machine for longer. */
const answers = (url: string, expected: number, text: RegExp) =>
  vi.waitFor(
    async () => {
      const response = await fetch(url)
      expect([response.status, await response.text()]).toEqual([expected, expect.stringMatching(text)])
    },
    { timeout: 60_000 },
  )

it('the listener of start shows no data of items and no token, tells with status of a configuration that has changed since, and of a mirror that was moved away', async ({
  scene: { workspace, configure },
}) => {
  const start = workspace.startHere(['start'])
  const url = String((await start.log(({ event }) => event === 'listening')).url)
  await start.log(({ event }) => event === 'run_finished')
  const told = async () => {
    const { code, stdout } = await workspace.run(['status', '--check'])
    return [code, stdout]
  }

  expect(workspace.value('SELECT note FROM orders')).toBe('Data-of-an-item')
  for (const path of PATHS) await answers(url + path, 200, /^(?!.*(?:Data-of-an-item|Secret-of-acme))./s)
  await answers(`${url}check`, 200, /^ok\n$/)

  configure({ keepRuns: '80d' })
  expect(await told()).toEqual([0, expect.stringMatching(/older configuration.*next: restart start/s)])
  await answers(`${url}check`, 200, /^ok\n.*older configuration/)

  configure({ organizations: [ACME, GLOBEX] })
  expect(await told()).toEqual([1, expect.stringMatching(/next: restart start/)])
  await answers(`${url}check`, 503, /older configuration.*globex orders/s)

  fs.rmSync(workspace.file('admin-mirror.yaml'))
  await answers(`${url}check`, 503, /^the configuration file is gone or wrong/)
  fs.renameSync(workspace.mirror, `${workspace.mirror}.moved`)
  await answers(`${url}readyz`, 503, /deleted or moved away/)
  fs.renameSync(`${workspace.mirror}.moved`, workspace.mirror)
  // It waits for no client that keeps its connection.
  expect((await stop(start)).code).toBe(0)
  await expect(fetch(url)).rejects.toThrow()
})

it('the listener says that a run of start could not write, until it can be written again', async ({
  scene: { workspace },
}) => {
  let isBroken = false
  const end = watchEdges(({ what, file }) => {
    if (file !== workspace.mirror) return
    isBroken ||= what.startsWith('INSERT INTO sync_pages')
    if (isBroken && what === 'BEGIN IMMEDIATE') throw new Database.SqliteError('no', 'SQLITE_IOERR_WRITE')
  })
  onTestFinished(end)
  const start = workspace.startHere(['start'])
  const url = String((await start.log(({ event }) => event === 'listening')).url)
  await start.log(({ error_code: code }) => code === 'DATABASE')
  for (const path of ['readyz', 'check']) await answers(url + path, 503, /mirror\.db/)
  end()
  expect((await workspace.run(['sync', '--wait'])).code).toBe(0)

  expect((await workspace.run(['status', '--check'])).code).toBe(0)
  for (const path of ['readyz', 'check']) await answers(url + path, 200, /^ok\n$/)
  expect((await stop(start)).code).toBe(0)
})

it('start is refused a port in use with exit code 2, before anything is sent or written', async ({
  scene: { workspace, server, configure },
}) => {
  const { port } = new URL((await serve(() => ({}))).url)
  configure({ http: { port: Number(port) } })

  expect(await workspace.run(['start'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^http: cannot listen on 127\.0\.0\.1 port \d+: another process listens/),
  })
  expect([server.asked, fs.existsSync(workspace.mirror)]).toEqual([[], false])
})
