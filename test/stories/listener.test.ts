import fs from 'node:fs'
import { describe, expect } from 'vitest'
import { items, serve } from '../helpers/list-server.ts'
import { NEVER, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// The listener of a real start, on a real mirror. What it answers, and to whom: test/listener.

const PATHS = ['', 'healthz', 'readyz', 'metrics', 'status.json', 'check']

describe('the listener of start', () => {
  it.override({
    options: { list: items(6).map((item) => ({ ...item, note: 'Data-of-an-item' })) },
  })

  it('answers on every page, without data of items, says when the mirror was moved away, and ends with the command', async ({
    scene: { workspace, configure },
  }) => {
    configure({ schedule: NEVER, http: { port: 0 } })
    const start = workspace.startHere(['start'])
    const url = String((await start.log(({ event }) => event === 'listening')).url)
    await start.log(({ event }) => event === 'run_finished')

    const answers = await Promise.all(PATHS.map((path) => fetch(`${url}${path}`)))
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual(PATHS.map(() => 200))
    expect(workspace.value('SELECT note FROM orders')).toBe('Data-of-an-item')
    expect(texts.filter((text) => text.includes('Data-of-an-item'))).toEqual([])

    fs.renameSync(workspace.mirror, `${workspace.mirror}.moved`)
    let ready = await fetch(`${url}readyz`)
    while (ready.status === 200) ready = await fetch(`${url}readyz`)
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringMatching(/deleted or moved away/)])
    fs.renameSync(`${workspace.mirror}.moved`, workspace.mirror)
    // It waits for no client that keeps its connection.
    start.kill('SIGTERM')
    expect((await start.ended).code).toBe(0)
    await expect(fetch(url)).rejects.toThrow()
  })

  it('is refused a port in use with exit code 2, before anything is sent or written', async ({ scene }) => {
    const { workspace, server, configure } = scene
    const { port } = new URL((await serve(() => ({}))).url)
    configure({ http: { port: Number(port) } })

    expect(await workspace.run(['start'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^http: cannot listen on 127\.0\.0\.1 port \d+: another process listens/),
    })
    expect([server.asked, fs.existsSync(workspace.mirror)]).toEqual([[], false])
  })
})
