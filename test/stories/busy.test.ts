import { hostname } from 'node:os'
import { describe, expect } from 'vitest'
import { halt, type LogLine } from '../helpers/processes.ts'
import { ACME, createStanding, GLOBEX, NEVER, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// One owner a job, as commands tell of it. What decides: test/store/contract-leases.ts. Silent owners: owners.long.test.ts.

const isBusy = ({ event }: LogLine) => event === 'list_busy'
const isEnd = ({ event }: LogLine) => event === 'run_finished'

describe('a job that another command is working on', () => {
  it('is reported as BUSY, with who works on it; it leaves no run, and the other jobs go on', async () => {
    const { workspace, running, open } = await createStanding(['start'], {
      settings: { organizations: [ACME, GLOBEX], schedule: NEVER },
    })
    await running.log((line) => isEnd(line) && line.organization === 'globex')

    const other = await workspace.run(['sync'])
    open()
    await running.log((line) => isEnd(line) && line.organization === 'acme')
    running.kill('SIGTERM')
    await running.ended

    expect(other.code).toBe(1)
    expect(other.logs.find(({ error_code: code }) => code === 'BUSY')).toMatchObject({
      event: 'run_not_begun',
      organization: 'acme',
      error_message: expect.stringContaining(
        `the scheduler of process ${process.pid} on ${hostname()} is working on it`,
      ),
    })
    expect(workspace.rows('SELECT trigger, count(*) AS runs FROM sync_runs GROUP BY 1')).toEqual([
      { trigger: 'manual', runs: 1 },
      { trigger: 'schedule', runs: 2 },
    ])
  })

  it('is waited for with --wait, which says for whom, and read anew then', async () => {
    const { workspace, running, open } = await createStanding(['backfill', '--org', 'acme'])
    const waiting = workspace.startHere(['sync', '--wait'])
    const { msg } = await waiting.log(isBusy)
    open()
    await running.ended

    expect((await waiting.ended).code).toBe(0)
    expect(msg).toMatch(/^process \d+ on .* is working on it \(a backfill\); waiting for its end$/)
    expect(workspace.rows('SELECT status, pages FROM sync_runs')).toEqual([
      { status: 'succeeded', pages: 4 },
      { status: 'succeeded', pages: 4 },
    ])
  })

  it('stays with a process that stands still, and is taken over at once from one that was killed, of which status tells', async () => {
    const settings = { schedule: NEVER }
    const { workspace, running, open } = await createStanding(['start'], { start: 'start', settings })
    await halt(running, workspace.mirror)
    const beside = await workspace.run(['sync'])
    running.killAll('SIGKILL')
    await running.ended
    open()

    const { stdout } = await workspace.run(['status'])
    const next = await workspace.run(['sync'])

    expect([beside.code, beside.logs.map(({ error_code: code }) => code)]).toEqual([1, ['BUSY']])
    expect(stdout).toMatch(/^daemon: process \d+, running since .* died without being stopped$/m)
    expect(stdout).toMatch(/stopped: page 2.*the next run continues there/)
    expect(next.code).toBe(0)
    expect(workspace.rows('SELECT status, pages, requests FROM sync_runs ORDER BY id')).toEqual([
      // The second page was asked for before the first one was written.
      { status: 'interrupted', pages: 1, requests: 2 },
      { status: 'succeeded', pages: 4, requests: 4 },
    ])
  })
})
