import { expect } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { stop } from '../helpers/processes.ts'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'
import { organization, type Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// A limit at the command. When a request may leave, of any number of processes: test/api/rate.

const statusOf = async ({ run }: Workspace) => JSON.parse((await run(['status', '--json'])).stdout) as Status

it('a 429 that asks for more than maxWait stops the job; nothing is asked before the time, until resume', async ({
  scene: { workspace, api, server, configure },
}) => {
  configure({ organizations: [ACME, GLOBEX], rateLimit: { maxWait: '1m' } })
  const refused = { status: 429, headers: { 'retry-after': '3600' }, body: {} }
  api.instead = ({ token }) => (token === ACME.token ? refused : null)
  const acmes = () => server.asked.filter(({ token }) => token === ACME.token).length

  const sync = await workspace.run(['sync'])
  const again = await workspace.run(['sync', '--org', 'acme'])
  const { jobs, now } = await statusOf(workspace)

  expect([sync.code, again.code, acmes()]).toEqual([1, 1, 1])
  expect(jobs.map(({ error_code: code }) => code)).toEqual(['RATE_LIMITED', null])
  expect(again.logs.at(-1)).toMatchObject({ error_code: 'RATE_LIMITED', event: 'run_not_begun' })
  const minutes = (Date.parse(jobs[0]?.waiting_until ?? '') - Date.parse(now)) / 60_000
  expect(minutes).toBeGreaterThan(30)
  expect(minutes).toBeLessThan(61)

  api.instead = () => null
  expect(await workspace.run(['resume', '--org', 'acme'])).toMatchObject({ code: 0, stdout: '' })
  expect((await workspace.run(['sync', '--org', 'acme'])).code).toBe(0)
  expect(acmes()).toBe(4)
})

it('what a list waits for, and until when, is shown by status', async ({
  scene: { workspace, server, configure },
}) => {
  configure({ rateLimit: { requestsPerMinute: 2 } })
  const sync = workspace.startHere(['sync'])
  const { until } = await sync.log(({ event }) => event === 'waiting')
  const { stdout } = await workspace.run(['status'])
  const { jobs } = await statusOf(workspace)

  expect((await stop(sync)).code).toBe(143)
  expect(server.asked).toHaveLength(2)
  expect(stdout).toContain(': our own limit of 2 requests a minute')
  expect(jobs[0]).toMatchObject({ waiting_until: until })
})

it.for([
  ['token', 2],
  ['organization', 3],
  ['all', 1],
] as const)(
  'of three organizations, two of which share a token, the scope %s makes %i budgets',
  async ([scope, budgets], { scene: { workspace, configure } }) => {
    configure({
      organizations: [ACME, GLOBEX, organization('initech', 3, { token: ACME.token })],
      rateLimit: { scope },
    })

    await workspace.run(['sync'])

    expect(workspace.value('SELECT count(*) FROM sync_gates')).toBe(budgets)
  },
)
