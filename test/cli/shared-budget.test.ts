import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

/** A list of ten pages for each of two organizations, and five requests a minute for both together. */
async function setting() {
  const server = await serve((asked) => pageOf(items(20), asked))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [ACME, GLOBEX],
    rateLimit: { requestsPerMinute: 5, scope: 'all' },
  })
  return { server, workspace }
}

const isWait = ({ msg }: LogLine) => msg === 'waiting'

describe.concurrent('a budget of requests', () => {
  it('is one for all processes on the mirror', async () => {
    const { server, workspace } = await setting()

    const processes = ['acme', 'globex'].map((org) => workspace.start(['sync', '--org', org]))
    await Promise.all(processes.map((process) => process.log(isWait)))
    await server.arrivals(() => true, 5)
    for (const process of processes) process.kill('SIGTERM')
    const ended = await Promise.all(processes.map((process) => process.ended))

    expect(ended.map(({ code }) => code)).toEqual([143, 143])
    expect(server.asked).toHaveLength(5)
  })

  it('is kept for the next process, however the last one ended', async () => {
    const { server, workspace } = await setting()
    const first = workspace.start(['sync', '--org', 'acme'])
    await server.arrivals(() => true, 5)
    await first.log(isWait)
    first.kill('SIGKILL')
    await first.ended

    const next = workspace.start(['sync', '--org', 'globex'])
    const wait = await next.log(isWait)
    next.kill('SIGTERM')

    expect((await next.ended).code).toBe(143)
    expect(wait).toMatchObject({ organization: 'globex', reason: expect.stringContaining('our own limit') })
    expect(server.asked).toHaveLength(5)
  })

  it('is shown by status while somebody waits for it', async () => {
    const { server, workspace } = await setting()
    const sync = workspace.start(['sync', '--org', 'acme'])
    await server.arrivals(() => true, 5)
    const { until } = await sync.log(isWait)

    const text = await workspace.run(['status'])
    const json = await workspace.run(['status', '--json'])
    sync.kill('SIGTERM')
    await sync.ended

    const reason = 'our own limit of 5 requests a minute'
    expect(text.stdout).toContain(`: ${reason}`)
    const { jobs } = JSON.parse(json.stdout) as { jobs: Record<string, unknown>[] }
    expect(jobs.find((job) => job.organization === 'acme')).toMatchObject({
      waiting_for: reason,
      waiting_until: until,
    })
    expect(jobs.find((job) => job.organization === 'globex')).toMatchObject({ waiting_until: null })
  })
})
