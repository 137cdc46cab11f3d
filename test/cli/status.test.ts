import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { runInProcess } from './in-process.ts'
import { createDoor, items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, variable, type Workspace } from './workspace.ts'
import { written } from './written.ts'

interface Job {
  organization: string
  collection: string
  [field: string]: unknown
}

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

async function createScene() {
  const server = await serve((asked) =>
    asked.organization === GLOBEX.id ? { status: 404, body: {} } : pageOf(items(4), asked),
  )
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
  return { server, workspace }
}

/** A command that has read the first page and waits for the second until the door is opened. */
async function createStanding(args: readonly string[]) {
  const door = createDoor()
  const server = await serve(async (asked) => {
    if (asked.page === 2) await door.opened
    return pageOf(items(6), asked)
  })
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
  const sync = workspace.start(args)
  await server.arrival(({ page }) => page === 2)
  await written(workspace, 2)
  return { server, workspace, sync, open: door.open }
}

/** A backfill that was killed while it waited for page 3. */
async function createStoppedBackfill(typed: readonly string[]) {
  const server = await serve((asked) => (asked.page === 3 ? new Promise(() => {}) : pageOf(items(6), asked)))
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
  const running = workspace.start(typed)
  await server.arrival(({ page }) => page === 3)
  await written(workspace, 3)
  running.kill('SIGKILL')
  return { workspace, backfill: await running.ended }
}

async function jobs(workspace: Workspace): Promise<Job[]> {
  const { code, stdout, stderr } = await workspace.run(['status', '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return (JSON.parse(stdout) as { jobs: Job[] }).jobs
}

describe.concurrent('status', () => {
  it('before the first sync exits with 0, says what to type, and makes no mirror', async () => {
    const { workspace } = await createScene()

    const human = await workspace.run(['status'])
    const [acme] = await jobs(workspace)

    expect(human).toMatchObject({ code: 0, stderr: '' })
    expect(human.stdout).toMatch(/acme orders.*never synced/)
    expect(human.stdout).toMatch(/next: admin-mirror sync/)
    expect(acme).toMatchObject({
      organization_id: ACME.id,
      organization: 'acme',
      collection: 'orders',
      configured: true,
      rows: 0,
      as_of: null,
      last_run_at: null,
    })
    expect(fs.existsSync(workspace.mirror)).toBe(false)
  })

  it('tells how fresh each list is, what went wrong, and what to do', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])

    const human = await workspace.run(['status'])
    const [acme, globex] = await jobs(workspace)

    expect(human.code).toBe(0)
    expect(human.stdout).toMatch(/acme orders +4 rows +as of \d{4}-\d\d-\d\dT\S+Z \(.* ago\), steady/)
    expect(human.stdout).toMatch(/globex orders[\s\S]*ORGANIZATION_NOT_FOUND: globex orders page 1/)
    expect(human.stdout).toMatch(/next: .*globex/)
    expect(acme).toMatchObject({
      rows: 4,
      coverage: 'steady',
      last_run_status: 'succeeded',
      error_code: null,
      next: null,
    })
    expect(globex).toMatchObject({
      rows: 0,
      as_of: null,
      last_run_status: 'failed',
      error_code: 'ORGANIZATION_NOT_FOUND',
    })
  })

  it('says what sync_status says', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])

    const told = await jobs(workspace)

    const view = workspace.rows('SELECT * FROM sync_status ORDER BY organization')
    expect(told).toEqual(view.map((line) => expect.objectContaining(line)))
  })

  it('advises where the rate limit does not carry the refreshes that are configured', async () => {
    const { workspace } = await createScene()
    await workspace.run(['sync'])
    const database = new Database(workspace.file('mirror.db'))
    database
      .prepare(
        "UPDATE sync_jobs SET refresh = json_set(refresh, '$.interval', 2000000) WHERE refresh IS NOT NULL",
      )
      .run()
    database.close()

    const { stdout } = await workspace.run(['status'])

    expect(stdout).toMatch(
      /^advice: new rows of 1 list are looked for every 33 minutes, not every 5 minutes: /m,
    )
  })

  it.each([
    ['where every list is young enough', ['sync', '--org', 'acme'], '1d', 0],
    ['where one is too old', ['sync', '--org', 'acme'], '1ms', 1],
    ['where one was never read whole', ['sync'], '1d', 1],
    ['before the first sync', null, '1d', 1],
  ])('with --max-age %s exits with the code that says so', async (_, before, maxAge, code) => {
    const { server, workspace } = await createScene()
    if (before?.includes('--org')) workspace.configure({ baseUrl: server.url, organizations: [ACME] })
    if (before) await workspace.run(before)

    const status = await workspace.run(['status', '--max-age', maxAge])

    expect(status.code).toBe(code)
    expect(status.stdout).toMatch(/acme orders/)
  })

  it('says which list is older than --max-age', async () => {
    const server = await serve((asked) => pageOf(items(4), asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
    await workspace.run(['sync'])
    workspace.change(
      "UPDATE sync_walks SET started_at = '2020-01-01T00:00:00.000Z' WHERE organization_id LIKE '%2'",
    )

    const human = await workspace.run(['status', '--max-age', '1d'])
    const { code, stdout } = await workspace.run(['status', '--max-age', '1d', '--json'])

    expect([human.code, code]).toEqual([1, 1])
    expect(human.stdout).toContain('1 of 2 lists is older than')
    expect(human.stdout).toMatch(/globex orders.*\n {4}too old: --max-age is 1d\n/)
    expect(human.stdout).toContain('next: admin-mirror sync --org globex\n')
    expect(human.stdout).not.toMatch(/are well|nothing to do/)
    expect(JSON.parse(stdout)).toMatchObject({
      max_age: '1d',
      jobs: [
        { organization: 'acme', too_old: false, next: null },
        { organization: 'globex', too_old: true, next: 'admin-mirror sync --org globex' },
      ],
    })
  })

  it('shows how far an interrupted walk has come', async () => {
    const server = await serve((asked) =>
      asked.page === 2 ? new Promise(() => {}) : pageOf(items(6), asked),
    )
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
    const sync = workspace.start(['sync'])
    await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)
    const [running] = await jobs(workspace)
    sync.kill('SIGTERM')
    await sync.ended

    const human = await workspace.run(['status'])
    const config = workspace.file('admin-mirror.yaml')
    const place = { cwd: workspace.folder, env: {} }
    const typed = await runInProcess(['status', '--config', config], place)
    const named = await runInProcess(['status'], { ...place, env: { ADMIN_MIRROR_CONFIG: config } })

    expect(running).toMatchObject({
      last_run_status: 'running',
      walk_page: 2,
      walk_rows_seen: 2,
      walk_total: 6,
    })
    expect(human.stdout).toMatch(/stopped at page 2, 2 of 6 items seen/)
    expect(human.stdout).toMatch(/next: admin-mirror sync --org acme$/m)
    // It can be pasted as it stands, however the configuration was named.
    for (const { stdout } of [typed, named])
      expect(stdout).toContain(`next: admin-mirror sync --org acme --config ${config}\n`)
  })

  it('takes no killed sync for a running one', async () => {
    const { workspace, sync } = await createStanding(['sync'])
    const running = await workspace.run(['status'])
    const [before] = await jobs(workspace)
    sync.kill('SIGKILL')
    await sync.ended

    const killed = await workspace.run(['status'])
    const [after] = await jobs(workspace)

    expect(running.stdout).toMatch(/running since/)
    expect(running.stdout).toMatch(/the only list is not read whole yet/)
    expect(before).toMatchObject({ running: true, next: null })
    expect(killed.stdout).not.toMatch(/running|are well/)
    expect(killed.stdout).toMatch(/stopped at page 2.*the next run continues there/)
    expect(killed.stdout).toMatch(/next: admin-mirror sync --org acme/)
    expect(after).toMatchObject({ running: false, last_run_status: 'running' })
  })

  it('takes nothing from a running sync', async () => {
    const { workspace, sync, open } = await createStanding(['sync'])
    const owner = () => workspace.rows('SELECT owner FROM sync_jobs')
    const before = owner()

    await workspace.run(['status'])
    const other = await workspace.run(['sync'])

    expect(owner()).toEqual(before)
    expect(other.code).not.toBe(0)
    open()
    expect((await sync.ended).code).toBe(0)
  })

  it('shows an interrupted backfill with the command that goes on with it', async () => {
    const typed = 'backfill --org acme --collection orders --filter state=paid --filter a=1 --from-page 2'
    const { workspace, backfill } = await createStoppedBackfill(typed.split(' '))

    const human = await workspace.run(['status'])
    const [job] = await jobs(workspace)

    const again = 'backfill --org acme --collection orders --filter a=1 --filter state=paid --from-page 2'
    expect(backfill.signal ?? backfill.code).toBe('SIGKILL')
    expect(human.stdout).toContain(
      `a backfill stopped at page 3, 2 of 6 items seen; to continue it: admin-mirror ${again}\n`,
    )
    expect(human.stdout).not.toMatch(/the next run continues there|are well/)
    // Never read whole, whatever part of it a backfill reads.
    expect(human.stdout).toMatch(/next: admin-mirror sync --org acme\n/)
    expect(job).toMatchObject({
      walk_origin: 'backfill',
      backfills: [{ page: 3, next: `admin-mirror ${again}` }],
    })
  })

  it("shows a sync's walk as the progress, though a backfill was begun after it", async () => {
    const { workspace, sync, server } = await createStanding(['sync'])
    sync.kill('SIGKILL')
    await sync.ended
    const backfill = workspace.start(['backfill', '--org', 'acme', '--from-page', '2'])
    await server.arrivals(({ page }) => page === 2, 2)
    backfill.kill('SIGTERM')
    await backfill.ended

    const { stdout } = await workspace.run(['status'])
    const [job] = await jobs(workspace)

    expect(job).toMatchObject({ walk_origin: 'sync', walk_page: 2, walk_rows_seen: 2 })
    expect(stdout).toMatch(/next: admin-mirror sync --org acme$/m)
  })

  it('asks for a sync of a list that was only read in part', async () => {
    const { server, workspace } = await createScene()
    workspace.configure({ baseUrl: server.url, organizations: [ACME] })
    await workspace.run(['backfill', '--org', 'acme', '--from-page', '2'])

    const { stdout } = await workspace.run(['status'])

    expect(stdout).toMatch(/the only list needs attention/)
    expect(stdout).toMatch(/acme orders.*never read whole/)
    expect(stdout).toMatch(/next: admin-mirror sync --org acme\n/)
  })

  it('goes by the configuration as it is now, not as the last sync found it', async () => {
    const server = await serve((asked) => pageOf(items(4), asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
    await workspace.run(['sync'])
    workspace.change(
      "UPDATE sync_walks SET started_at = '2020-01-01T00:00:00.000Z' WHERE organization_id LIKE '%2'",
    )
    const before = await workspace.run(['status', '--max-age', '1d'])
    workspace.configure({ baseUrl: server.url, organizations: [{ ...ACME, name: 'acme-inc' }] })

    const human = await workspace.run(['status', '--max-age', '1d'])
    const told = await jobs(workspace)

    expect([before.code, human.code]).toEqual([1, 0])
    expect(human.stdout).toMatch(/globex orders.*\n.*no longer in the configuration/)
    expect(told).toMatchObject([
      { organization: 'acme-inc', configured: true },
      { organization: 'globex', configured: false },
    ])
  })

  it('leaves no control character as it is, whoever sent it', async () => {
    const server = await serve(() => ({ status: 422, body: { message: 'a\u001b[2Jb\u0007c\u202ed\ne' } }))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
    await workspace.run(['sync'])

    const { stdout } = await workspace.run(['status'])

    expect(stdout).toContain('\\u{1b}[2Jb')
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  it('needs no token', async () => {
    const { server, workspace } = await createScene()
    workspace.configure({ baseUrl: server.url, organizations: [{ ...ACME, token: variable('NOT_SET') }] })

    expect((await workspace.run(['status'])).code).toBe(0)
    expect((await workspace.run(['sync'])).code).toBe(2)
  })
})

describe.concurrent('status of a list that another process works on', () => {
  it('says what a page waits for that failed, since when and after which error, until it comes', async () => {
    const failing = createDoor()
    let isBroken = true
    const server = await serve((asked) => {
      if (!isBroken) return pageOf(items(4), asked)
      failing.open()
      return { status: 500, body: {} }
    })
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [ACME],
      retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' },
    })
    const stop = new AbortController()
    const place = { cwd: workspace.folder, env: { ADMIN_MIRROR_CONFIG: workspace.file('admin-mirror.yaml') } }
    const sync = runInProcess(['sync'], { ...place, signal: stop.signal })
    await failing.opened
    while (workspace.value('SELECT retry_since FROM sync_jobs') === null) await sleep(20)

    const human = await workspace.run(['status'])
    const [job] = await jobs(workspace)

    expect(human.stdout).toMatch(
      /waits until \S+Z \((1 hour|60 minutes)\) to ask again, since \S+Z \(.*\): acme orders page 1: .*500/,
    )
    expect(human.stdout).not.toContain('verify')
    const time = expect.stringMatching(/Z$/) as string
    const said = {
      retry_since: time,
      retry_until: time,
      retry_error: expect.stringContaining('500') as string,
    }
    expect(job).toMatchObject({ running: true, work: 'manual', ...said })

    stop.abort('SIGINT')
    expect((await sync).code).toBe(130)
    isBroken = false
    expect((await workspace.run(['sync'])).code).toBe(0)
    expect((await jobs(workspace))[0]).toMatchObject({ work: null, retry_since: null, retry_error: null })
  })

  it('says of a verify alone that the list is compared, also after a run that was killed', async () => {
    const door = createDoor()
    let isShut = false
    const server = await serve(async (asked) => {
      if (isShut) await door.opened
      return pageOf(items(4), asked)
    })
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
    await workspace.run(['sync'])
    workspace.change("UPDATE sync_runs SET status = 'running', finished_at = NULL")
    isShut = true
    const told = async (typed: string) => {
      const before = server.asked.length
      const command = workspace.run(typed.split(' '))
      while (server.asked.length === before) await sleep(20)
      const { stdout } = await workspace.run(['status'])
      const [job] = await jobs(workspace)
      const busy = await workspace.run(['sync'])
      return { command, stdout, work: job?.work, busy: `${busy.stdout}${busy.stderr}` }
    }

    const verify = await told('verify')
    expect(verify).toMatchObject({
      work: 'verify',
      stdout: expect.stringContaining('running: being compared (verify)') as string,
      busy: expect.stringContaining('is comparing it with the API (verify)') as string,
    })
    expect(verify.stdout).not.toContain('running since')
    door.open()
    expect((await verify.command).code).toBe(0)
  })
})

describe('an organization that is taken out of the configuration', () => {
  it('stays with its rows, and is asked for no more', async () => {
    const server = await serve((asked) => pageOf(items(4), asked))
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
    await workspace.run(['sync'])
    const before = server.asked.length
    workspace.configure({ baseUrl: server.url, organizations: [ACME] })

    const sync = await workspace.run(['sync'])
    const status = await workspace.run(['status', '--max-age', '1d'])

    expect(sync.code).toBe(0)
    expect(server.asked.slice(before).map((asked) => asked.organization)).not.toContain(GLOBEX.id)
    expect(workspace.rows('SELECT name, configured FROM organizations ORDER BY name')).toEqual([
      { name: 'acme', configured: 1 },
      { name: 'globex', configured: 0 },
    ])
    expect(workspace.rows('SELECT organization, rows FROM sync_status ORDER BY organization')).toEqual([
      { organization: 'acme', rows: 4 },
      { organization: 'globex', rows: 4 },
    ])
    expect(status.code).toBe(0)
    expect(status.stdout).toMatch(/globex orders[\s\S]*no longer in the configuration/)
  })
})
