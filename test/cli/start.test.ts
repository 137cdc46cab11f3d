import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items, pageOf, type Reply, serve } from './list-server.ts'
import type { LogLine } from './processes.ts'
import { createWorkspace, organization } from './workspace.ts'
import { written } from './written.ts'

const ITEMS = items(6)
const NEVER = '0 0 29 2 *'
const EVERY_SECOND = '* * * * * *'
const finished = ({ event }: LogLine) => event === 'run_finished'

async function createScene(schedule: string, reply?: (asked: Asked) => Promise<Reply>) {
  const server = await serve(reply ?? ((asked) => pageOf(ITEMS, asked)))
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    schedule,
  })
  return { server, workspace }
}

describe.concurrent('start', () => {
  it('runs at once what was never completed, writes to standard error alone, and ends with 0', async () => {
    const { workspace } = await createScene(NEVER)
    const start = workspace.start(['start', '--log-level', 'trace'])
    await start.log(finished)

    start.kill('SIGTERM')
    const ended = await start.ended

    expect(ended).toMatchObject({ code: 0, signal: null, stdout: '' })
    expect(ended.logs).toHaveLength(ended.stderr.trimEnd().split('\n').length)
    expect(workspace.rows('SELECT trigger, status, rows_added FROM sync_runs')).toEqual([
      { trigger: 'schedule', status: 'succeeded', rows_added: 6 },
    ])
  })

  it('does not run again after a restart what is not due', async () => {
    const { server, workspace } = await createScene(NEVER)
    await workspace.run(['sync'])
    const asked = server.asked.length

    const start = workspace.start(['start'])
    const started = await start.log(({ msg }) => msg === 'started')
    start.kill('SIGINT')
    const ended = await start.ended

    expect(started).toMatchObject({ jobs: 1, due: 0 })
    expect(ended.code).toBe(0)
    expect(server.asked).toHaveLength(asked)
    expect(workspace.value('SELECT count(*) FROM sync_runs')).toBe(1)
  })

  it('runs once what fell due while it was down', async () => {
    const { workspace } = await createScene('0 0 1 1 *')
    await workspace.run(['sync'])
    workspace.change("UPDATE sync_walks SET started_at = '2020-06-01T00:00:00.000Z'")
    workspace.change("UPDATE sync_runs SET started_at = '2020-06-01T00:00:00.000Z'")

    const start = workspace.start(['start'])
    const started = await start.log(({ msg }) => msg === 'started')
    await start.log(finished)
    start.kill('SIGTERM')
    await start.ended

    expect(started).toMatchObject({ jobs: 1, due: 1 })
    // The first run is older than keepRuns by now.
    expect(workspace.rows('SELECT trigger FROM sync_runs ORDER BY id')).toEqual([{ trigger: 'schedule' }])
  })

  it('runs a job whenever its time comes', async () => {
    const { server, workspace } = await createScene(EVERY_SECOND)
    const start = workspace.start(['start'])

    await server.arrivals(({ page }) => page === 2, 3)
    start.kill('SIGTERM')
    await start.ended

    expect(workspace.value("SELECT count(*) FROM sync_walks WHERE status = 'complete'")).toBeGreaterThan(1)
  })

  it('never runs a job twice at once, and says what it skips', async () => {
    const door = createDoor()
    const { server, workspace } = await createScene(EVERY_SECOND, async (asked) => {
      await door.opened
      return pageOf(ITEMS, asked)
    })
    const start = workspace.start(['start'])
    await server.arrival(({ page }) => page === 1)
    await start.log(({ level, msg }) => level === 'warn' && /still runs/.test(msg))

    expect(server.asked).toHaveLength(1)

    door.open()
    await server.arrivals(({ page }) => page === 2, 2)
    start.kill('SIGTERM')
    await start.ended
    expect(
      workspace.rows(`
        SELECT one.id
        FROM sync_runs AS one
        JOIN sync_runs AS other ON other.id > one.id AND other.started_at < one.finished_at
      `),
    ).toEqual([])
  })

  it('ends with 0 in the middle of a run, and the next start goes on there at once', async () => {
    const door = createDoor()
    const { server, workspace } = await createScene(NEVER, async (asked) => {
      if (asked.page === 2) await door.opened
      return pageOf(ITEMS, asked)
    })
    const first = workspace.start(['start'])
    await server.arrival(({ page }) => page === 2)
    await written(workspace, 2)
    first.kill('SIGTERM')

    expect((await first.ended).code).toBe(0)
    expect(workspace.rows('SELECT status, error_code FROM sync_runs')).toEqual([
      { status: 'interrupted', error_code: 'INTERRUPTED' },
    ])

    door.open()
    const second = workspace.start(['start'])
    await second.log(finished)
    second.kill('SIGTERM')
    await second.ended

    expect(workspace.rows('SELECT status, coverage FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'steady' },
    ])
    expect(workspace.rows('SELECT first_page FROM sync_runs ORDER BY id')).toEqual([
      { first_page: 1 },
      { first_page: 2 },
    ])
  })

  it('follows the schedule of each organization', async () => {
    const server = await serve((asked) => pageOf(ITEMS, asked))
    const rare = organization('rare', 1, { schedule: NEVER })
    const often = organization('often', 2)
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [rare, often],
      schedule: EVERY_SECOND,
    })
    const start = workspace.start(['start'])

    await server.arrivals((asked) => asked.organization === often.id && asked.page === 2, 3)
    start.kill('SIGTERM')
    await start.ended

    expect(server.asked.filter((asked) => asked.organization === rare.id && asked.page === 2)).toHaveLength(1)
  })
})
