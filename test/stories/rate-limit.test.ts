import { describe, expect } from 'vitest'
import type { Status } from '../../src/report/status.ts'
import { items } from '../helpers/list-server.ts'
import type { LogLine } from '../helpers/processes.ts'
import { ACME, GLOBEX, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// A limit at the command, and one budget for all processes. When a request may leave: test/api/rate.

const isWait = ({ event }: LogLine) => event === 'waiting'

it('a 429 that asks for more than maxWait stops the job; nothing is asked before the time, until resume', async ({
  scene: { workspace, api, server, configure },
}) => {
  configure({ organizations: [ACME, GLOBEX], rateLimit: { maxWait: '1m' } })
  const refused = { status: 429, headers: { 'retry-after': '3600' }, body: {} }
  api.instead = ({ token }) => (token === ACME.token ? refused : null)
  const acmes = () => server.asked.filter(({ token }) => token === ACME.token).length

  const sync = await workspace.run(['sync'])
  const again = await workspace.run(['sync', '--org', 'acme'])
  const status = JSON.parse((await workspace.run(['status', '--json'])).stdout) as Status

  expect([sync.code, again.code, acmes()]).toEqual([1, 1, 1])
  expect(workspace.rows('SELECT organization, error_code FROM sync_status ORDER BY 1')).toEqual([
    { organization: 'acme', error_code: 'RATE_LIMITED' },
    { organization: 'globex', error_code: null },
  ])
  expect(again.logs.at(-1)).toMatchObject({ error_code: 'RATE_LIMITED', event: 'run_not_begun' })
  const minutes = (Date.parse(status.jobs[0]?.waiting_until ?? '') - Date.parse(status.now)) / 60_000
  expect(minutes).toBeGreaterThan(30)
  expect(minutes).toBeLessThan(61)

  api.instead = () => null
  expect(await workspace.run(['resume', '--org', 'acme'])).toMatchObject({ code: 0, stdout: '' })
  expect((await workspace.run(['sync', '--org', 'acme'])).code).toBe(0)
  expect(acmes()).toBe(4)
})

describe('a budget of five requests a minute for two lists of ten pages', () => {
  const settings = { organizations: [ACME, GLOBEX], rateLimit: { requestsPerMinute: 5, scope: 'all' } }
  it.override({ options: { list: items(20), settings } })

  it('is one for all processes, is shown by status, and is kept for the next one, however the last one ended', async ({
    scene: { workspace, server },
  }) => {
    const acme = workspace.start(['sync', '--org', 'acme'])
    const globex = workspace.start(['sync', '--org', 'globex'])
    const [wait] = await Promise.all([acme.log(isWait), globex.log(isWait), server.arrival(() => true, 5)])
    const { stdout } = await workspace.run(['status'])
    const { jobs } = JSON.parse((await workspace.run(['status', '--json'])).stdout) as Status
    acme.kill('SIGTERM')
    globex.kill('SIGKILL')
    const [{ code }] = await Promise.all([acme.ended, globex.ended])
    const next = workspace.startHere(['sync', '--org', 'globex'])
    const nextWait = await next.log(isWait)
    next.kill('SIGTERM')

    expect([code, (await next.ended).code]).toEqual([143, 143])
    expect(server.asked).toHaveLength(5)
    expect(stdout).toContain(': our own limit of 5 requests a minute')
    expect(jobs[0]).toMatchObject({ organization: 'acme', waiting_until: wait.until })
    expect(nextWait.reason).toContain('our own limit')
  })
})
