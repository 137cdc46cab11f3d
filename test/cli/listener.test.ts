import fs from 'node:fs'
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { parseScrape } from '../listener/exposition.ts'
import { createDoor, items, pageOf, type Reply, serve } from './list-server.ts'
import type { LogLine, Running } from './processes.ts'
import { createWorkspace, leaksOf, organization } from './workspace.ts'

const NEVER = '0 0 29 2 *'
const PATHS = ['', 'healthz', 'readyz', 'metrics', 'status.json', 'check']
const finished = ({ event }: LogLine) => event === 'run_finished'

async function createScene(reply?: () => Promise<Reply>, more: object = {}) {
  const server = await serve(reply ?? ((asked) => pageOf(items(6), asked)))
  const acme = organization('acme', 1)
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [acme],
    schedule: NEVER,
    http: { port: 0 },
    ...more,
  })
  return { server, workspace, token: acme.token ?? '' }
}

async function urlOf(start: Running): Promise<string> {
  return String((await start.log(({ msg }) => msg === 'listening')).url)
}

async function bodies(url: string): Promise<string[]> {
  return Promise.all(PATHS.map(async (path) => (await fetch(`${url}${path}`)).text()))
}

describe.concurrent('the listener of start', () => {
  it('tells of the mirror on every page without data of items, and ends with the command', async () => {
    const { workspace } = await createScene()
    const personal = items(6).map((item) => ({ ...item, note: 'Data-of-an-item' }))
    const server = await serve((asked) => pageOf(personal, asked))
    workspace.configure({
      baseUrl: server.url,
      organizations: [organization('acme', 1)],
      schedule: NEVER,
      http: { port: 0 },
    })
    const start = workspace.start(['start'])
    const url = await urlOf(start)
    await start.log(finished)

    const statuses = await Promise.all(PATHS.map(async (path) => (await fetch(`${url}${path}`)).status))
    let scrape = parseScrape(await (await fetch(`${url}metrics`)).text())
    while (!scrape.samples.some(({ name, value }) => name === 'admin_mirror_runs_total' && value === 1))
      scrape = parseScrape(await (await fetch(`${url}metrics`)).text())
    const shown = (await (await fetch(`${url}status.json`)).json()) as { jobs: object[]; daemon: object }
    const texts = await bodies(url)
    const { stdout } = await workspace.run(['status', '--json'])
    start.kill('SIGTERM')
    const { code } = await start.ended

    expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
    expect(workspace.value('SELECT note FROM orders')).toBe('Data-of-an-item')
    expect(texts.filter((text) => text.includes('Data-of-an-item'))).toEqual([])
    const value = (wanted: string, status?: string) =>
      scrape.samples.find(({ name, labels }) => name === wanted && (!status || labels.status === status))
        ?.value
    expect(value('admin_mirror_rows')).toBe(6)
    expect(value('admin_mirror_requests_total', '200')).toBeGreaterThan(0)
    expect(value('admin_mirror_scheduler_ticking')).toBe(1)
    const command = JSON.parse(stdout) as { jobs: object[]; daemon: object }
    expect(shown.daemon).toEqual(command.daemon)
    expect(shown.jobs).toMatchObject([
      { organization: 'acme', collection: 'orders', rows: 6, running: false },
    ])
    expect(Object.keys(shown)).toEqual(Object.keys(command))
    expect(code).toBe(0)
    await expect(fetch(url)).rejects.toThrow()
  })

  it('shows no token, also after a 401 that repeats the token', async () => {
    const { workspace, token } = await createScene(async () => ({
      status: 401,
      body: { message: `the token ${token} is bad` },
    }))
    const start = workspace.start(['start'])
    const url = await urlOf(start)
    await start.log(({ event }) => /^run_(?:not_begun|finished)$/.test(String(event)))

    const shown = await bodies(url)
    start.kill('SIGTERM')
    await start.ended

    expect(leaksOf([token], shown)).toEqual([])
    expect(shown[0]).toContain('held')
    expect(parseScrape(shown[3] ?? '').samples).toContainEqual({
      name: 'admin_mirror_token_held',
      labels: { organization: 'acme' },
      value: 1,
    })
  })

  it('shows how far a running walk is', async () => {
    const door = createDoor()
    const server = await serve(async (asked) => {
      if (asked.page === 3) await door.opened
      return pageOf(items(50), asked)
    })
    const { workspace } = await createScene()
    workspace.configure({
      baseUrl: server.url,
      organizations: [organization('acme', 1)],
      schedule: NEVER,
      http: { port: 0 },
    })
    const start = workspace.start(['start'])
    const url = await urlOf(start)
    await server.arrival(({ page }) => page === 3)

    let page = await (await fetch(url)).text()
    while (!page.includes('being read') || !/role="img" aria-label="\d+ %"/.test(page))
      page = await (await fetch(url)).text()
    const { stdout } = await workspace.run(['status', '--json'])
    door.open()
    start.kill('SIGTERM')
    await start.ended

    expect(page).toMatch(/items seen/)
    // Looking at the mirror has not cost the process its lock.
    expect(JSON.parse(stdout)).toMatchObject({ daemon: { running: true }, jobs: [{ running: true }] })
  })

  it('is refused a port in use with exit code 2, before anything is sent or written', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const address = other.address()
    const port = typeof address === 'object' ? address?.port : 0
    const { server, workspace } = await createScene(undefined, { http: { port } })

    const { code, stderr } = await workspace.run(['start'])
    other.close()

    expect(code).toBe(2)
    expect(stderr).toMatch(
      new RegExp(`^http: cannot listen on 127\\.0\\.0\\.1 port ${port}: another process listens`),
    )
    expect(server.asked).toEqual([])
    expect(fs.existsSync(workspace.mirror)).toBe(false)
  })

  it('is not there without http in the configuration', async () => {
    const { workspace } = await createScene(undefined, { http: null })
    const start = workspace.start(['start'])
    await start.log(finished)

    start.kill('SIGTERM')
    const { logs } = await start.ended

    expect(logs.filter(({ msg }) => msg === 'listening')).toEqual([])
  })

  it('says that the mirror cannot be used when its file was moved away', async () => {
    const { workspace } = await createScene()
    const start = workspace.start(['start'])
    const url = await urlOf(start)
    await start.log(finished)

    fs.renameSync(workspace.mirror, `${workspace.mirror}.moved`)
    let answer = await fetch(`${url}readyz`)
    while (answer.status === 200) answer = await fetch(`${url}readyz`)
    const reason = await answer.text()
    fs.renameSync(`${workspace.mirror}.moved`, workspace.mirror)
    start.kill('SIGTERM')
    await start.ended

    expect([answer.status, reason]).toEqual([503, expect.stringContaining('was deleted or moved away')])
  })

  it('does not keep the command from ending while a client holds its connection', async () => {
    const { workspace } = await createScene()
    const start = workspace.start(['start'])
    const url = await urlOf(start)
    const answer = await fetch(url)

    start.kill('SIGTERM')
    const { code } = await start.ended

    expect(code).toBe(0)
    await answer.text().catch(() => {})
  })
})
