import { describe, expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { type LogLine, stop } from '../../helpers/processes.ts'
import { ACME, createStanding, EVERY_SECOND, GLOBEX, NEVER, sceneTests } from '../../helpers/scene.ts'

const it = sceneTests()

// start and its schedule, by the real clock. What is due when: test/schedule; signals to a real process: test/stories/signals.test.ts.

const finished = ({ event }: LogLine) => event === 'run_finished'
const started = ({ event }: LogLine) => event === 'daemon_started'

describe.concurrent('start', () => {
  it.override({ options: { list: items(6), settings: { schedule: NEVER } } })

  it.for([
    ['SIGTERM', 0],
    ['SIGHUP', 129],
  ] as const)(
    'runs at once what was never completed, writes to standard error alone, and ends after %s with %d',
    async ([signal, code], { scene: { workspace } }) => {
      const start = workspace.startHere(['start', '--log-level', 'trace'])
      await start.log(finished)

      start.kill(signal)
      const ended = await start.ended

      expect(ended).toMatchObject({ code, stdout: '' })
      expect(ended.logs).toHaveLength(ended.stderr.trimEnd().split('\n').length)
      expect(workspace.rows('SELECT trigger, status, rows_added FROM sync_runs')).toEqual([
        { trigger: 'schedule', status: 'succeeded', rows_added: 6 },
      ])
    },
  )

  it('does not run again what is not due; runs once what fell due while it was down', async ({ synced }) => {
    const { workspace, server, configure } = synced
    configure({ schedule: '0 0 1 1 *' })
    const first = workspace.startHere(['start'])
    const none = await first.log(started)
    await stop(first, 'SIGINT')
    expect([none.due, server.asked]).toEqual([0, []])

    for (const table of ['sync_walks', 'sync_runs'])
      workspace.change(`UPDATE ${table} SET started_at = '2020-06-01T00:00:00.000Z'`)
    const second = workspace.startHere(['start'])
    const one = await second.log(started)
    await second.log(finished)
    await stop(second)

    expect(one).toMatchObject({ jobs: 1, due: 1 })
    // The first run is older than keepRuns by now.
    expect(workspace.rows('SELECT trigger FROM sync_runs ORDER BY id')).toEqual([{ trigger: 'schedule' }])
  })

  it('runs a job whenever the time of its organization comes, never twice at once, and says what it skips', async () => {
    const organizations = [ACME, { ...GLOBEX, schedule: NEVER }]
    const settings = { organizations, schedule: EVERY_SECOND, refresh: false }
    const { running, server, open } = await createStanding(['start'], { settings })
    const pagesOf = ({ id }: { id: string }) =>
      server.asked.filter(({ organization }) => organization === id).map(({ page }) => page)
    await running.log(({ event, job }) => event === 'schedule_skipped' && job === 'acme orders')
    expect(pagesOf(ACME)).toEqual([1, 2])

    open()
    await running.log((line) => finished(line) && line.organization === 'acme', 3)
    await stop(running)
    expect(pagesOf(GLOBEX).filter((page) => page === 3)).toHaveLength(1)
  })

  it('ends with 0 in the middle of a run, and the next start goes on there at once', async () => {
    const { workspace, running, open } = await createStanding(['start'], { settings: { schedule: NEVER } })
    expect((await stop(running)).code).toBe(0)
    open()

    const second = workspace.startHere(['start'])
    await second.log(finished)
    await stop(second)

    expect(workspace.rows('SELECT first_page, status, error_code FROM sync_runs ORDER BY id')).toEqual([
      { first_page: 1, status: 'interrupted', error_code: 'INTERRUPTED' },
      { first_page: 2, status: 'succeeded', error_code: null },
    ])
  })
})
