import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { Status } from '../../../src/report/status.ts'
import { items } from '../../helpers/list-server.ts'
import type { LogLine } from '../../helpers/processes.ts'
import { ACME, createStanding, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// What status says of a real mirror, and its exit codes. How it is worded: test/report. Who is told without asking: test/stories/told.test.ts.

/** Never fires while a test runs, unless it runs at New Year's midnight. */
const YEARLY = { schedule: '0 0 1 1 *' }
const OLD = "'2020-01-01T00:00:00.000Z'"

async function statusOf(workspace: Workspace): Promise<Status> {
  const { code, stdout, stderr } = await workspace.run(['status', '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Status
}

const jobsOf = async (workspace: Workspace) => (await statusOf(workspace)).jobs

/** What status writes for people. */
async function told(workspace: Workspace, ...options: string[]) {
  const { code, stdout, stderr } = await workspace.run(['status', ...options])
  expect(stderr).toBe('')
  return { code, text: stdout }
}

describe('status', () => {
  it.override({ options: { settings: { organizations: [ACME, GLOBEX], ...YEARLY } } })

  it('before the first sync exits with 0, says what to type, needs no token, and makes no mirror', async ({
    scene,
  }) => {
    const { workspace, configure } = scene
    configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }] })

    const { code, text } = await told(workspace)
    const [acme] = await jobsOf(workspace)

    expect(code).toBe(0)
    expect(text).toMatch(/acme orders.*never read/)
    expect(text).toMatch(/next: admin-mirror sync/)
    expect(acme).toMatchObject({
      organization_id: ACME.id,
      organization: 'acme',
      collection: 'orders',
      rows: 0,
      as_of: null,
      last_run_at: null,
    })
    expect(fs.existsSync(workspace.mirror)).toBe(false)
    expect((await workspace.run(['sync'])).code).toBe(2)
  })

  it('tells how fresh each list is, what went wrong, and what to do, as sync_status does', async ({
    scene,
  }) => {
    const { workspace, api } = scene
    api.instead = ({ organization }) => (organization === GLOBEX.id ? { status: 404, body: {} } : null)
    await workspace.run(['sync'])

    const { code, text } = await told(workspace)
    const all = await jobsOf(workspace)

    expect(code).toBe(0)
    expect(text).toMatch(/^acme orders +4 rows +read +as of \d+ seconds? ago$/m)
    expect(text).toMatch(/^globex orders: failing since \S+ \(.*\): ORGANIZATION_NOT_FOUND/m)
    expect(all).toMatchObject([
      {
        organization: 'acme',
        rows: 4,
        coverage: 'steady',
        last_run_status: 'succeeded',
        error_code: null,
        next: null,
      },
      {
        organization: 'globex',
        rows: 0,
        as_of: null,
        last_run_status: 'failed',
        error_code: 'ORGANIZATION_NOT_FOUND',
      },
    ])
    const view = workspace.rows('SELECT * FROM sync_status ORDER BY organization')
    expect(all).toEqual(view.map((line) => expect.objectContaining(line)))
  })

  it('with --max-age and --fresh says which list is too old, and exits with 1', async ({
    scene: { workspace },
  }) => {
    const codeOf = async (...options: string[]) => (await told(workspace, ...options)).code
    // Never read whole.
    expect([await codeOf('--max-age', '1d'), await codeOf('--fresh', '1d')]).toEqual([1, 1])
    await workspace.run(['sync'])
    expect([await codeOf('--max-age', '1d'), await codeOf('--fresh', '1d')]).toEqual([0, 0])
    workspace.change(`
      UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}';
      UPDATE sync_jobs SET fresh_as_of = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)

    const old = await told(workspace, '--max-age', '1d')
    const stale = await told(workspace, '--fresh', '1d')
    const { code, stdout } = await workspace.run(['status', '--max-age', '1d', '--json'])

    expect([old.code, stale.code, code]).toEqual([1, 1, 1])
    expect(old.text).toContain('1 of 2 lists is older than')
    expect(old.text).toMatch(/globex orders.*\n {4}older than --max-age 1d\n/)
    expect(old.text).toContain('next: admin-mirror sync --org globex\n')
    expect(old.text).not.toMatch(/are well|nothing to do/)
    expect(stale.text).toMatch(
      /globex orders.*\n {4}older than --fresh 1d: rows added after 2020-01-01T00:00:00\.000Z may be missing\n/,
    )
    expect(JSON.parse(stdout)).toMatchObject({
      jobs: [
        { organization: 'acme', too_old: false, next: null },
        { organization: 'globex', too_old: true, next: { command: 'admin-mirror sync --org globex' } },
      ],
    })
  })

  it('goes by the configuration as it is now; who left it stays with its rows, and is asked for no more', async ({
    synced,
  }) => {
    const { workspace, server, configure } = synced
    workspace.change(`UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)
    configure({ organizations: [{ ...ACME, name: 'acme-inc' }] })

    const { code, text } = await told(workspace, '--max-age', '1d')
    const jobs = await jobsOf(workspace)
    await workspace.run(['sync'])

    expect(code).toBe(0)
    expect(text).toMatch(
      /globex orders +4 rows +not configured.*\n +no longer in the configuration; its rows stay/,
    )
    expect(jobs).toMatchObject([
      { organization: 'acme-inc', state: 'read' },
      { organization: 'globex', state: 'not configured' },
    ])
    expect(server.asked.map(({ organization }) => organization)).not.toContain(GLOBEX.id)
    expect(workspace.rows('SELECT name, configured FROM organizations ORDER BY name')).toEqual([
      { name: 'acme-inc', configured: 1 },
      { name: 'globex', configured: 0 },
    ])
    expect(workspace.rows('SELECT organization, rows FROM sync_status ORDER BY 1')).toEqual([
      { organization: 'acme-inc', rows: 4 },
      { organization: 'globex', rows: 4 },
    ])
  })
})

describe('status of a walk', () => {
  it('shows how far it has come, and once it was stopped what goes on with it; a backfill beside it', async () => {
    const { workspace, api, running } = await createStanding(['sync'], {
      page: 8,
      list: items(20),
      settings: YEARLY,
    })
    const [before] = await jobsOf(workspace)
    const during = await told(workspace)
    running.kill('SIGTERM')
    await running.ended
    const stopped = await told(workspace)
    api.instead = ({ page }) => (page === 4 ? { status: 403, body: {} } : null)
    const typed = '--filter state=paid --filter a=1 --from-page 2'
    await workspace.run(`backfill --org acme --collection orders ${typed}`.split(' '))

    const after = await told(workspace)
    const [job] = await jobsOf(workspace)

    expect(before).toMatchObject({
      running: true,
      last_run_status: 'running',
      state: 'first reading',
      walk_percent: 70,
      walk_left_ms: expect.any(Number),
      overdue: false,
      next: null,
    })
    expect(during.text).toMatch(/running since .*: page 8, 14 of 20 items seen \(70 %\), about .* left/)
    expect(during.text).toMatch(/^daemon: none runs/m)
    expect(stopped.text).toMatch(/stopped: page 8, 14 of 20 items seen.*the next run continues there/)
    expect(stopped.text).toMatch(/next: admin-mirror sync --org acme$/m)
    expect(after.text).toContain('stopped: a backfill at page 4, 4 of 20 items seen (20 %)\n')
    expect(job).toMatchObject({ state: 'failing', walk_percent: 20 })
  })

  it('takes no killed sync for a running one', async () => {
    const { workspace, running } = await createStanding(['sync'], { start: 'start' })
    running.kill('SIGKILL')
    await running.ended

    const { text } = await told(workspace)

    expect(text).not.toMatch(/running|are well/)
    expect(text).toMatch(/stopped: page 2.*the next run continues there/)
    expect((await jobsOf(workspace))[0]).toMatchObject({ running: false, last_run_status: 'running' })
  })

  it('says what a page waits for that failed, since when and after which error, until it comes', async ({
    scene,
  }) => {
    const { workspace, api, configure } = scene
    configure({ retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' } })
    api.instead = () => ({ status: 500, body: {} })
    const sync = workspace.startHere(['sync'])
    await sync.log(({ msg }) => msg.endsWith('trying again'))
    while (workspace.value('SELECT retry_since FROM sync_jobs') === null) await sleep(20)

    const { text } = await told(workspace)
    const [job] = await jobsOf(workspace)
    sync.kill('SIGINT')
    await sync.ended
    api.instead = () => null
    await workspace.run(['sync'])

    expect(text).toMatch(
      /^the only list gets no answer since \S+Z \(.*\): the server failed; it is tried again$/m,
    )
    expect(text).toMatch(/^acme orders: no answer since \S+Z \(.*\): SERVER_ERROR: .*500/m)
    expect(job).toMatchObject({
      running: true,
      state: 'no answer',
      problem: { code: 'SERVER_ERROR', since: expect.stringMatching(/Z$/) },
    })
    expect((await jobsOf(workspace))[0]).toMatchObject({ state: 'read', problem: null })
  })
})

const isStarted = ({ event }: LogLine) => event === 'daemon_started'

describe('a daemon', () => {
  it.override({ options: { settings: YEARLY } })

  it('is told of while it runs, with the next time of each list', async ({ scene: { workspace } }) => {
    const daemon = workspace.startHere(['start'])
    await daemon.log(({ event }) => event === 'run_finished')
    const during = await statusOf(workspace)
    const { text } = await told(workspace)
    daemon.kill('SIGTERM')
    await daemon.ended
    const after = await statusOf(workspace)

    const nextYear = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1)).toISOString()
    expect(during).toMatchObject({
      version: 1,
      verdict: 'the only list is well',
      check_exit_code: 0,
      daemon: { running: true, processes: [{ pid: process.pid, running: true }] },
      jobs: [{ state: 'read', next_run_at: nextYear, overdue: false }],
    })
    expect(text).toMatch(/^daemon: runs since \S+ \(.*\), process \d+$/m)
    expect(text).toMatch(/acme orders .*; next walk in \d+ (days|hours)/)
    expect(after.daemon).toEqual({ running: false, processes: [] })
    expect(after.verdict).toBe('the only list is up to date; no daemon runs')
  })

  it('beside another one is told of by status', async ({ scene: { workspace } }) => {
    const first = workspace.startHere(['start'])
    await first.log(({ event }) => event === 'run_finished')
    const second = workspace.startHere(['start'])
    await second.log(isStarted)
    const { code, text } = await told(workspace, '--check')
    for (const one of [first, second]) one.kill('SIGTERM')
    await Promise.all([first.ended, second.ended])

    expect(text).toMatch(/^daemon: runs since .*, process \d+; runs since .*, process \d+$/m)
    expect(text).toMatch(/^next: stop all daemons but one, since each of them reads every list: \d+, \d+$/m)
    expect(code).toBe(0)
  })

  it('that runs or not, status --check exits with the code of the worst', async ({
    scene: { workspace },
  }) => {
    const check = async (change = '') => {
      if (change !== '') workspace.change(change)
      return (await told(workspace, '--check', '--max-age', '1000d')).code
    }
    const never = await check()
    await workspace.run(['sync'])

    expect([never, await check()]).toEqual([1, 0])
    expect(
      await check(
        "UPDATE sync_jobs SET failing_since = '2026-01-01T00:00:00.000Z', failing_by = 'walk', failing_code = 'NETWORK'",
      ),
    ).toBe(1)
    expect(await check("UPDATE sync_jobs SET removals_held = 3, held_why = 'brake'")).toBe(5)
    expect(
      await check(
        "UPDATE organizations SET held_since = '2026-01-01T00:00:00.000Z', held_reason = 'refused'",
      ),
    ).toBe(3)
    expect((await told(workspace)).code).toBe(0)
  })

  it('takes a list for overdue by the time zone of its schedule', async ({
    synced: { workspace, configure },
  }) => {
    configure({ timezone: 'Asia/Tokyo' })
    workspace.change(`
      UPDATE sync_walks SET started_at = ${OLD}, finished_at = ${OLD};
      UPDATE sync_runs SET started_at = ${OLD}, finished_at = ${OLD}`)

    const { code, text } = await told(workspace, '--check')

    expect(code).toBe(1)
    expect(text).toContain('the only list needs attention (overdue); no daemon runs')
    expect(text).toMatch(
      /^acme orders: overdue since 2020-12-31T15:00:00\.000Z \(.*\): by its schedule \(0 0 1 1 \*\) it should have been read$/m,
    )
    expect(text).toContain('next: admin-mirror sync --org acme\n')
    expect((await jobsOf(workspace))[0]?.problem?.since).toBe('2020-12-31T15:00:00.000Z')
  })
})
