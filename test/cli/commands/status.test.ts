import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Status } from '../../../src/report/status.ts'
import { items } from '../../helpers/list-server.ts'
import { stop } from '../../helpers/processes.ts'
import { ACME, createStanding, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

// What status reads of a real mirror and configuration, and its exit codes. What follows from that, and its words: test/report.

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

it('tells of each list what sync_status does, and what went wrong; what is asked with --check, --max-age and --fresh is the exit code', async ({
  scene: { workspace, api },
}) => {
  const codes = async () => {
    const asked = [['--check'], ['--max-age', '1d'], ['--fresh', '1d'], []]
    return Promise.all(asked.map(async (options) => (await told(workspace, ...options)).code))
  }
  api.instead = ({ organization }) => (organization === GLOBEX.id ? { status: 404, body: {} } : null)
  await workspace.run(['sync'])

  const { text, jobs } = await told(workspace)
  expect(text).toMatch(/^acme orders +4 rows +read +as of \d+ seconds? ago$/m)
  expect(text).toMatch(/^globex orders: failing since \S+ \(.*\): ORGANIZATION_NOT_FOUND/m)
  const view = workspace.rows('SELECT * FROM sync_status ORDER BY organization')
  expect(jobs).toEqual(view.map((line) => expect.objectContaining(line)))
  // It was never read whole.
  expect(await codes()).toEqual([1, 1, 1, 0])

  api.instead = () => null
  await workspace.run(['sync'])
  expect(await codes()).toEqual([0, 0, 0, 0])
  workspace.change(`
    UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}';
    UPDATE sync_jobs SET fresh_as_of = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)
  expect(await codes()).toEqual([0, 1, 1, 0])
  expect((await told(workspace, '--fresh', '1d')).text).toMatch(
    /globex orders.*\n {4}older than --fresh 1d: rows added after 2020-01-01T00.* may be missing/,
  )
})

it('goes by the configuration as it is now; who left it stays with its rows, and is asked for no more', async ({
  synced: { workspace, server, configure },
}) => {
  workspace.change(`UPDATE sync_walks SET started_at = ${OLD} WHERE organization_id = '${GLOBEX.id}'`)
  configure({ organizations: [{ ...ACME, name: 'acme-inc' }] })

  const { code, jobs } = await told(workspace, '--max-age', '1d')
  await workspace.run(['sync'])

  expect(code).toBe(0)
  expect(jobs).toMatchObject([
    { organization: 'acme-inc', state: 'read', rows: 4 },
    { organization: 'globex', state: 'not configured', rows: 4 },
  ])
  const exported = await workspace.run('export orders --format ndjson --org globex'.split(' '))
  expect(exported.stdout.trimEnd().split('\n')).toHaveLength(4)
  expect(server.asked.map(({ organization }) => organization)).not.toContain(GLOBEX.id)
  expect(workspace.rows('SELECT name, configured FROM organizations ORDER BY name')).toEqual([
    { name: 'acme-inc', configured: 1 },
    { name: 'globex', configured: 0 },
  ])
})

it('shows how far a walk has come, and once it was stopped what goes on with it; a backfill beside it', async () => {
  const options = { page: 8, list: items(20), settings: YEARLY }
  const { workspace, api, running } = await createStanding(['sync'], options)
  const during = await told(workspace)
  await stop(running)
  const stopped = await told(workspace)
  api.instead = ({ page }) => (page === 4 ? { status: 403, body: {} } : null)
  await workspace.run('backfill --org acme --filter state=paid --from-page 2'.split(' '))
  const after = await told(workspace)

  expect(during.jobs).toMatchObject([{ running: true, state: 'first reading', walk_percent: 70 }])
  expect(during.text).toMatch(/running since .*: page 8, 14 of 20 items seen \(70 %\)/)
  expect(stopped.text).toMatch(/stopped: page 8, 14 of 20 items seen/)
  expect(stopped.text).toMatch(/next: admin-mirror sync --org acme$/m)
  expect(after.text).toContain('stopped: a backfill at page 4, 4 of 20 items seen (20 %)\n')
})

it('names the page at which three runs have stopped, and says what to wait for while one tries again', async ({
  scene: { workspace, api, configure },
}) => {
  api.instead = ({ page }) => (page === 2 ? { status: 500, body: {} } : null)
  configure({ organizations: [ACME], retry: { attempts: 1 } })
  for (let run = 0; run < 3; run++) await workspace.run(['sync'])
  const stopped = await told(workspace)
  configure({ organizations: [ACME], retry: { attempts: 4, minDelay: '1h', maxDelay: '1h' } })
  const sync = workspace.startHere(['sync'])
  while (workspace.value('SELECT retry_since FROM sync_jobs') === null) await sleep(20)
  const during = await told(workspace)
  await stop(sync, 'SIGINT')

  expect(stopped.text).toMatch(/^next: page 2 failed in 2 runs,.* --from-page 3$/m)
  expect(during.jobs).toMatchObject([{ running: true, state: 'failing' }])
  expect(during.text).toMatch(/^next: wait: it is tried again by itself$/m)
})

it('tells of a daemon while it runs, with the next time of each list', async ({ synced: { workspace } }) => {
  const start = workspace.startHere(['start'])
  await start.log(({ event }) => event === 'daemon_started')
  const during = await told(workspace, '--check')
  await stop(start)

  const nextYear = new Date(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1)).toISOString()
  expect(during).toMatchObject({
    code: 0,
    status: { daemon: { running: true, processes: [{ pid: process.pid, running: true }] } },
    jobs: [{ next_run_at: nextYear, overdue: false }, { next_run_at: nextYear }],
  })
  expect((await told(workspace)).status).toMatchObject({
    version: 1,
    check_exit_code: 0,
    daemon: { running: false, processes: [] },
  })
})

it('takes a list for overdue by the time zone of its schedule', async ({
  synced: { workspace, configure },
}) => {
  configure({ organizations: [ACME], timezone: 'Asia/Tokyo' })
  for (const table of ['sync_walks', 'sync_runs'])
    workspace.change(`UPDATE ${table} SET started_at = ${OLD}, finished_at = ${OLD}`)

  const { code, jobs } = await told(workspace, '--check')

  expect(code).toBe(1)
  expect(jobs[0]).toMatchObject({ state: 'overdue', problem: { since: '2020-12-31T15:00:00.000Z' } })
})

it.for<[string, RegExp]>([
  ['published.db', /published\.db is a published file/],
  ['admin-mirror.yaml/mirror.db', /mirror\.db cannot be written \(ENOTDIR\)/],
])(
  'exits with 4 as every command does that would write, where the mirror is %s',
  async ([database, why], { scene }) => {
    const { workspace, configure } = scene
    configure({ publish: 'published.db' })
    await workspace.run(['sync'])
    configure({ database })

    expect(await told(workspace, '--check')).toMatchObject({
      code: 4,
      status: { unusable: expect.stringMatching(why) },
    })
    expect((await workspace.run(['sync'])).code).toBe(4)
  },
)
