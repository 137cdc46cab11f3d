import fs from 'node:fs'
import { createServer } from 'node:http'
import { describe, expect } from 'vitest'
import { items } from '../helpers/list-server.ts'
import type { LogLine, RunningCommand } from '../helpers/processes.ts'
import { NEVER, type Scene, sceneTests } from '../helpers/scene.ts'
import { parseScrape } from '../listener/exposition.ts'

const it = sceneTests()

// The listener of a real start, on a real mirror. What it answers, and to whom: test/listener; alarms: told.test.ts.

const PATHS = ['', 'healthz', 'readyz', 'metrics', 'status.json', 'check']
const WITH_LISTENER = { schedule: NEVER, http: { port: 0 } }
const finished = ({ event }: LogLine) => event === 'run_finished'
const get = async (url: string) => (await fetch(url)).text()

async function begin({ workspace }: Scene) {
  const start = workspace.startHere(['start'])
  return { start, url: await urlOf(start) }
}

async function urlOf(start: RunningCommand): Promise<string> {
  return String((await start.log(({ event }) => event === 'listening')).url)
}

describe('the listener of start', () => {
  it.override({
    options: {
      list: items(6).map((item) => ({ ...item, note: 'Data-of-an-item' })),
      settings: WITH_LISTENER,
    },
  })

  it('tells of the mirror on every page without data of items, and ends with the command', async ({
    scene,
  }) => {
    const { start, url } = await begin(scene)
    await start.log(finished)

    const statuses = await Promise.all(PATHS.map(async (path) => (await fetch(`${url}${path}`)).status))
    const scrape = async () => parseScrape(await get(`${url}metrics`)).samples
    let samples = await scrape()
    const value = (wanted: string, status?: string) =>
      samples.find(
        ({ name, labels }) => name === `admin_mirror_${wanted}` && (!status || labels.status === status),
      )?.value
    while (value('rows') !== 6) samples = await scrape()
    const shown = JSON.parse(await get(`${url}status.json`)) as { jobs: object[]; daemon: object }
    const texts = await Promise.all(PATHS.map((path) => get(`${url}${path}`)))
    const command = JSON.parse((await scene.workspace.run(['status', '--json'])).stdout) as typeof shown
    // It waits for no client that keeps its connection.
    start.kill('SIGTERM')

    expect((await start.ended).code).toBe(0)
    await expect(fetch(url)).rejects.toThrow()
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
    expect(scene.workspace.value('SELECT note FROM orders')).toBe('Data-of-an-item')
    expect(texts.filter((text) => text.includes('Data-of-an-item'))).toEqual([])
    expect([value('rows'), value('scheduler_ticking')]).toEqual([6, 1])
    expect(value('requests_total', '200')).toBeGreaterThan(0)
    expect(shown.daemon).toEqual(command.daemon)
    expect(shown.jobs).toMatchObject([
      { organization: 'acme', collection: 'orders', rows: 6, running: false },
    ])
    expect(Object.keys(shown)).toEqual(Object.keys(command))
  })

  it('is refused a port in use with exit code 2, before anything is sent or written', async ({ scene }) => {
    const { workspace, server, configure } = scene
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const address = other.address()
    const port = typeof address === 'object' ? address?.port : 0
    configure({ http: { port } })

    const { code, stderr } = await workspace.run(['start'])
    other.close()

    expect(code).toBe(2)
    expect(stderr).toMatch(
      new RegExp(`^http: cannot listen on 127\\.0\\.0\\.1 port ${port}: another process listens`),
    )
    expect([server.asked, fs.existsSync(workspace.mirror)]).toEqual([[], false])
  })

  it('says that the mirror cannot be used when its file was moved away', async ({ scene }) => {
    const { start, url } = await begin(scene)
    await start.log(finished)
    const { mirror } = scene.workspace

    fs.renameSync(mirror, `${mirror}.moved`)
    let answer = await fetch(`${url}readyz`)
    while (answer.status === 200) answer = await fetch(`${url}readyz`)
    const reason = await answer.text()
    fs.renameSync(`${mirror}.moved`, mirror)
    start.kill('SIGTERM')
    await start.ended

    expect([answer.status, reason]).toEqual([503, expect.stringContaining('was deleted or moved away')])
  })
})
