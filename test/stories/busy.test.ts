import { hostname } from 'node:os'
import { expect, it } from 'vitest'
import { RESTLESS } from '../helpers/in-process.ts'
import { halt, stop } from '../helpers/processes.ts'
import { ACME, createStanding, GLOBEX, NEVER } from '../helpers/scene.ts'

// One owner a job, as commands tell of it. What decides: test/store/contract-leases.ts. Silent owners: owners.long.test.ts.

it('a job that another command is working on is reported as BUSY, with who works on it, and leaves no run, while the other jobs go on; with --wait it is waited for', async () => {
  const settings = { organizations: [ACME, GLOBEX] }
  const { workspace, running, open } = await createStanding(['backfill', '--org', 'acme'], { settings })

  const other = await workspace.run(['sync'])
  const waiting = ['sync', 'backfill', 'verify'].map((name) =>
    workspace.startHere([name, '--org', 'acme', '--wait'], { clock: RESTLESS }),
  )
  const told = await Promise.all(waiting.map((one) => one.log(({ event }) => event === 'list_busy')))
  open()
  await running.ended

  const who = `process ${process.pid} on ${hostname()} is working on it`
  const codes = await Promise.all(waiting.map(async ({ ended }) => (await ended).code))
  expect([other.code, ...codes]).toEqual([1, 0, 0, 0])
  expect(other.logs.find(({ error_code: code }) => code === 'BUSY')).toMatchObject({
    event: 'run_not_begun',
    organization: 'acme',
    error_message: expect.stringContaining(who),
  })
  expect(told.map(({ msg }) => msg)).toEqual(Array.from({ length: 3 }, () => `${who}; waiting for its end`))
  expect(workspace.rows('SELECT trigger, status, count(*) AS runs FROM sync_runs GROUP BY 1, 2')).toEqual([
    { trigger: 'backfill', status: 'succeeded', runs: 2 },
    { trigger: 'manual', status: 'succeeded', runs: 2 },
  ])
})

it('a job stays with a process that stands still, and is taken over at once from one that was killed, of which status tells', async () => {
  const settings = { schedule: NEVER }
  const { workspace, running, open } = await createStanding(['start'], { start: 'start', settings })
  await halt(running, workspace.mirror)
  const beside = await workspace.run(['sync'])
  await stop(running, 'SIGKILL')
  open()

  const { stdout } = await workspace.run(['status'])
  const next = await workspace.run(['sync'])

  expect([beside.code, beside.logs.map(({ error_code: code }) => code)]).toEqual([1, ['BUSY']])
  expect(stdout).toMatch(/^daemon: process \d+, running since .* died without being stopped$/m)
  expect(stdout).toMatch(/stopped: page 2, 2 of 6 items seen/)
  expect(next.code).toBe(0)
  expect(workspace.rows('SELECT status, pages, requests FROM sync_runs ORDER BY id')).toEqual([
    // The second page was asked for before the first one was written.
    { status: 'interrupted', pages: 1, requests: 2 },
    { status: 'succeeded', pages: 4, requests: 4 },
  ])
})
