import { expect } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { items } from '../helpers/list-server.ts'
import { type LogLine, stop } from '../helpers/processes.ts'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'
import { organization, type Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// A limit at the command, and one budget for all processes. When a request may leave: test/api/rate.

const isWait = ({ event }: LogLine) => event === 'waiting'
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

it('a budget is one for all processes, is shown by status, and is kept for the next one, though the last one was killed', async ({
  scene: { workspace, server, api, configure },
}) => {
  api.list = items(20)
  configure({ organizations: [ACME, GLOBEX], rateLimit: { requestsPerMinute: 5, scope: 'all' } })
  const killed = workspace.start(['sync', '--org', 'globex'])
  const acme = workspace.startHere(['sync', '--org', 'acme'])
  const [wait] = await Promise.all([acme.log(isWait), killed.log(isWait), server.arrival(() => true, 5)])
  const { stdout } = await workspace.run(['status'])
  const { jobs } = await statusOf(workspace)
  await stop(killed, 'SIGKILL')
  const next = workspace.startHere(['sync', '--org', 'globex'])
  const { reason } = await next.log(isWait)
  for (const one of [acme, next]) one.kill('SIGTERM')

  expect([(await acme.ended).code, (await next.ended).code]).toEqual([143, 143])
  expect(server.asked).toHaveLength(5)
  expect(stdout).toContain(': our own limit of 5 requests a minute')
  expect(jobs[0]).toMatchObject({ organization: 'acme', waiting_until: wait.until })
  expect(reason).toContain('our own limit')
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
