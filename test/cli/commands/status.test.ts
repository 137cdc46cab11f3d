import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Status } from '../../../src/report/status.ts'
import { items } from '../../helpers/list-server.ts'
import { ACME, createStanding, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

// What status reads of a real mirror, and its exit codes. How it is worded: test/report.

/** Never fires while a test runs, unless it runs at New Year's midnight. */
const YEARLY = { schedule: '0 0 1 1 *' }
const OLD = "'2020-01-01T00:00:00.000Z'"

const it = sceneTests()

it.override({ options: { settings: { organizations: [ACME, GLOBEX], ...YEARLY } } })

/** What status writes for people, and for programs. */
async function told({ run }: Workspace, ...options: string[]) {
  const [{ code, stdout: text, stderr }, json] = await Promise.all([
    run(['status', ...options]),
    run(['status', '--json', ...options]),
  ])
  expect([stderr, json.code, json.stderr]).toEqual(['', code, ''])
  const { jobs, ...status } = JSON.parse(json.stdout) as Status
  return { code, text, status, jobs }
}

it('before the first sync says what to type, exits with 0, needs no token, and makes no mirror', async ({
  scene: { workspace, configure },
}) => {
  configure({ organizations: [{ ...ACME, token: variable('NOT_SET') }] })

  const { code, text, jobs } = await told(workspace)

  expect(code).toBe(0)
  expect(text).toMatch(/acme orders.*never read(.|\n)*next: admin-mirror sync/)
  expect(jobs).toMatchObject([{ organization_id: ACME.id, collection: 'orders', rows: 0, as_of: null }])
  expect(fs.existsSync(workspace.mirror)).toBe(false)
})

it('tells how fresh each list is, what went wrong, and what to do, as sync_status does', async ({
  scene: { workspace, api },
}) => {
  api.instead = ({ organization }) => (organization === GLOBEX.id ? { status: 404, body: {} } : null)
  await workspace.run(['sync'])

  const { code, text, jobs } = await told(workspace)

  expect(code).toBe(0)
  expect(text).toMatch(/^acme orders +4 rows +read +as of \d+ seconds? ago$/m)
  expect(text).toMatch(/^globex orders: failing since \S+ \(.*\): ORGANIZATION_NOT_FOUND/m)
  expect(jobs).toMatchObject([
    { rows: 4, coverage: 'steady', last_run_status: 'succeeded', error_code: null, next: null },
    { rows: 0, as_of: null, last_run_status: 'failed', error_code: 'ORGANIZATION_NOT_FOUND' },
  ])
  const view = workspace.rows('SELECT * FROM sync_status ORDER BY organization')
  expect(jobs).toEqual(view.map((line) => expect.objectContaining(line)))
})

it('with --max-age and --fresh says which list is too old, and exits with 1', async ({
  scene: { workspace },
}) => {
  const codes = async () => [
    (await told(workspace, '--max-age', '1d')).code,
    (await told(workspace, '--fresh', '1d')).code,
  ]
  // Never read whole.
  expect(await codes()).toEqual([1, 1])
  await workspace.run(['sync'])
  expect(await codes()).toEqual([0, 0])
  workspace.change(`
    UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}';
    UPDATE sync_jobs SET fresh_as_of = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)

  const old = await told(workspace, '--max-age', '1d')
  const stale = await told(workspace, '--fresh', '1d')

  expect([old.code, stale.code]).toEqual([1, 1])
  expect(old.text).toMatch(/globex orders.*\n {4}older than --max-age 1d\n/)
  expect(old.text).not.toMatch(/are well|nothing to do/)
  expect(old.jobs).toMatchObject([
    { organization: 'acme', too_old: false, next: null },
    { organization: 'globex', too_old: true, next: { command: 'admin-mirror sync --org globex' } },
  ])
  expect(stale.text).toMatch(
    /globex orders.*\n {4}older than --fresh 1d: rows added after 2020-01-01T00.* may be missing/,
  )
})

it('goes by the configuration as it is now; who left it stays with its rows, and is asked for no more', async ({
  synced: { workspace, server, configure },
}) => {
  workspace.change(`UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)
  configure({ organizations: [{ ...ACME, name: 'acme-inc' }] })

  const { code, text, jobs } = await told(workspace, '--max-age', '1d')
  await workspace.run(['sync'])

  expect(code).toBe(0)
  expect(text).toMatch(
    /globex orders +4 rows +not configured.*\n +no longer in the configuration; its rows stay/,
  )
  expect(jobs.map(({ organization, state }) => `${organization}: ${state}`)).toEqual([
    'acme-inc: read',
    'globex: not configured',
  ])
  expect(server.asked.map(({ organization }) => organization)).not.toContain(GLOBEX.id)
  expect(
    workspace.rows(
      'SELECT name, configured, rows FROM organizations JOIN sync_status ON id = organization_id ORDER BY name',
    ),
  ).toEqual([
    { name: 'acme-inc', configured: 1, rows: 4 },
    { name: 'globex', configured: 0, rows: 4 },
  ])
})

it('shows how far a walk has come, and once it was stopped what goes on with it; a backfill beside it', async () => {
  const options = { page: 8, list: items(20), settings: YEARLY }
  const { workspace, api, running } = await createStanding(['sync'], options)
  const during = await told(workspace)
  running.kill('SIGTERM')
  await running.ended
  const stopped = await told(workspace)
  api.instead = ({ page }) => (page === 4 ? { status: 403, body: {} } : null)
  const backfill = 'backfill --org acme --collection orders --filter state=paid --filter a=1 --from-page 2'
  await workspace.run(backfill.split(' '))
  const after = await told(workspace)

  const walk = { walk_percent: 70, walk_left_ms: expect.any(Number), overdue: false, next: null }
  expect(during.jobs).toMatchObject([
    { running: true, last_run_status: 'running', state: 'first reading', ...walk },
  ])
  expect(during.text).toMatch(/running since .*: page 8, 14 of 20 items seen \(70 %\), about .* left/)
  expect(stopped.text).toMatch(/stopped: page 8, 14 of 20 items seen.*the next run continues there/)
  expect(stopped.text).toMatch(/next: admin-mirror sync --org acme$/m)
  expect(after.text).toContain('stopped: a backfill at page 4, 4 of 20 items seen (20 %)\n')
})

it('says what a page waits for that failed, since when and after which error, until it comes', async ({
  scene: { workspace, api, configure },
}) => {
  configure({ organizations: [ACME], retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' } })
  api.instead = () => ({ status: 500, body: {} })
  const sync = workspace.startHere(['sync'])
  await sync.log(({ event }) => event === 'request_retried')
  while (workspace.value('SELECT retry_since FROM sync_jobs') === null) await sleep(20)

  const { text, jobs } = await told(workspace)
  sync.kill('SIGINT')
  await sync.ended
  api.instead = () => null
  await workspace.run(['sync'])

  expect(text).toMatch(
    /^the only list gets no answer since \S+Z \(.*\): the server failed; it is tried again$/m,
  )
  const problem = { code: 'SERVER_ERROR', since: expect.stringMatching(/Z$/) }
  expect(jobs).toMatchObject([{ running: true, state: 'no answer', problem }])
  expect((await told(workspace)).jobs).toMatchObject([{ state: 'read', problem: null }])
})

it('names the page at which three runs have stopped, and what reads those behind it', async ({
  scene: { workspace, api, configure },
}) => {
  configure({ organizations: [ACME], retry: { attempts: 1 } })
  api.list = items(10)
  api.instead = ({ page }) => (page === 3 ? { status: 500, body: {} } : null)
  for (let run = 0; run < 3; run++) await workspace.run(['sync'])

  expect((await told(workspace)).text).toMatch(
    /next: page 3 failed in each of the last 3 runs,.* admin-mirror backfill --org acme --collection orders --from-page 4$/m,
  )
})

it('tells of each daemon while it runs, with the next time of each list', async ({
  scene: { workspace },
}) => {
  const daemons = [workspace.startHere(['start']), workspace.startHere(['start'])]
  for (const one of daemons) await one.log(({ event }) => event === 'daemon_started')
  await daemons[0]?.log(({ event }) => event === 'run_finished')
  while (workspace.value("SELECT count(*) FROM sync_walks WHERE status = 'complete'") !== 2) await sleep(20)
  const during = await told(workspace, '--check')
  for (const one of daemons) one.kill('SIGTERM')
  await Promise.all(daemons.map(({ ended }) => ended))
  const after = await told(workspace)

  const nextYear = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1)).toISOString()
  const daemon = { pid: process.pid, running: true }
  expect(during).toMatchObject({
    code: 0,
    status: { version: 1, check_exit_code: 0, daemon: { running: true, processes: [daemon, daemon] } },
    jobs: [{ next_run_at: nextYear, overdue: false }, { next_run_at: nextYear }],
  })
  expect(during.text).toMatch(/^daemon: runs since .*, process \d+; runs since .*, process \d+$/m)
  expect(during.text).toMatch(/^next: stop all daemons but one/m)
  expect(after.status.daemon).toEqual({ running: false, processes: [] })
  expect(after.text).toMatch(/^daemon: none runs/m)
})

it('with --check exits with the code of the worst', async ({ scene: { workspace } }) => {
  const at = "'2026-01-01T00:00:00.000Z'"
  const check = async (change = '') => {
    if (change !== '') workspace.change(change)
    return (await told(workspace, '--check', '--max-age', '1000d')).code
  }
  const never = await check()
  await workspace.run(['sync'])

  expect([never, await check()]).toEqual([1, 0])
  expect(
    await check(`UPDATE sync_jobs SET failing_since = ${at}, failing_by = 'walk', failing_code = 'NETWORK'`),
  ).toBe(1)
  const held = `SELECT organization_id, collection, '1', 'held', 1, 'removed' FROM sync_jobs LIMIT 1`
  expect(await check(`INSERT INTO sync_missing ${held}; UPDATE sync_jobs SET held_why = 'brake'`)).toBe(5)
  expect(await check(`UPDATE organizations SET held_since = ${at}, held_reason = 'refused'`)).toBe(3)
  expect((await told(workspace)).code).toBe(0)
})

it('takes a list for overdue by the time zone of its schedule', async ({
  synced: { workspace, configure },
}) => {
  configure({ organizations: [ACME], timezone: 'Asia/Tokyo' })
  for (const table of ['sync_walks', 'sync_runs'])
    workspace.change(`UPDATE ${table} SET started_at = ${OLD}, finished_at = ${OLD}`)

  const { code, text, jobs } = await told(workspace, '--check')

  expect(code).toBe(1)
  expect(text).toMatch(
    /^acme orders: overdue since 2020-12-31T15:00:00\.000Z \(.*\): by its schedule \(0 0 1 1 \*\)/m,
  )
  expect(text).toContain('next: admin-mirror sync --org acme\n')
  expect(jobs[0]?.problem?.since).toBe('2020-12-31T15:00:00.000Z')
})
