import { hostname } from 'node:os'
import { describe, expect } from 'vitest'
import { halt } from '../helpers/halted.ts'
import type { LogLine } from '../helpers/processes.ts'
import { ACME, createStanding, GLOBEX, NEVER, sceneTests } from '../helpers/scene.ts'

const it = sceneTests()

// One owner a job, as commands tell of it. Processes that want a job in the same instant, and what decides:
// test/store/contract-leases.ts and test/sync/job.test.ts. One that stands still for long: owners.long.test.ts.

const isBusy = ({ event }: LogLine) => event === 'list_busy'
const BOTH = { organizations: [ACME, GLOBEX], schedule: NEVER }

describe('a job that another command is working on', () => {
  it('is reported as busy, with who works on it; it leaves no run, and the other jobs go on', async () => {
    const { workspace, running, open } = await createStanding(['start'], { settings: BOTH })
    await running.log(({ event, organization }) => event === 'run_finished' && organization === 'globex')

    const other = await workspace.run(['sync'])
    open()
    await running.log(({ event, organization }) => event === 'run_finished' && organization === 'acme')
    running.kill('SIGTERM')
    await running.ended

    expect(other.code).toBe(1)
    expect(other.logs.filter(({ error_code: code }) => code === 'BUSY')).toMatchObject([
      {
        event: 'run_not_begun',
        organization: 'acme',
        collection: 'orders',
        error_message: `acme orders: the scheduler of process ${process.pid} on ${hostname()} is working on it; nothing is wrong, and --wait waits until that is done`,
      },
    ])
    expect(workspace.rows('SELECT trigger, count(*) AS runs FROM sync_runs GROUP BY 1')).toEqual([
      { trigger: 'manual', runs: 1 },
      { trigger: 'schedule', runs: 2 },
    ])
    expect(workspace.rows('SELECT * FROM sync_workers')).toEqual([])
  })

  it.for([['sync', '--wait'], ['start']])(
    'is waited for by %j, which says for whom, and read anew then',
    async (args) => {
      const { workspace, running, open } = await createStanding(['backfill', '--org', 'acme'], {
        settings: { schedule: NEVER },
      })
      const waiting = workspace.startHere(args)
      const { msg } = await waiting.log(isBusy)

      open()
      await running.ended
      await waiting.log(({ event }) => event === 'run_finished')
      if (args[0] === 'start') waiting.kill('SIGTERM')

      expect(msg).toBe(
        `process ${process.pid} on ${hostname()} is working on it (a backfill); waiting for its end`,
      )
      expect((await waiting.ended).code).toBe(0)
      expect(workspace.rows('SELECT status, pages FROM sync_runs ORDER BY id')).toEqual([
        { status: 'succeeded', pages: 4 },
        { status: 'succeeded', pages: 4 },
      ])
    },
  )
})

describe('a job of a real process', () => {
  it('stays with one that merely stands still, and is taken over at once from one that was killed', async () => {
    const { workspace, running, open } = await createStanding(['sync'], { start: 'start' })
    await halt(running, workspace.mirror)
    const beside = await workspace.run(['sync'])
    running.killAll('SIGKILL')
    await running.ended
    open()

    const next = await workspace.run(['sync'])

    expect([beside.code, beside.logs.map(({ error_code: code }) => code)]).toEqual([1, ['BUSY']])
    expect(next.code).toBe(0)
    expect(workspace.rows('SELECT status, pages, requests FROM sync_runs ORDER BY id')).toEqual([
      // The second page was asked for before the first one was written.
      { status: 'interrupted', pages: 1, requests: 2 },
      { status: 'succeeded', pages: 4, requests: 4 },
    ])
  })
})
