import { expect, it } from 'vitest'
import { CONTAINER, halt, HAS_CONTAINERS } from '../helpers/processes.ts'
import { createStanding } from '../helpers/scene.ts'

// Who stands still, or dies where nobody sees it, keeps its jobs until it is found silent. One that is killed on the same machine:
// busy.test.ts.

it('a process that stands still is overtaken, and writes nothing when it goes on', async () => {
  const { workspace, api, running, open } = await createStanding(['sync'], { start: 'start' })
  await halt(running, workspace.mirror)
  api.instead = () => null

  const next = await workspace.run(['sync', '--wait'])
  const walks = workspace.rows('SELECT * FROM sync_walks')
  open()
  running.killAll('SIGCONT')
  const { code, logs } = await running.ended

  expect(next.code).toBe(0)
  expect(next.logs.some(({ event }) => event === 'list_busy')).toBe(true)
  expect(code).toBe(1)
  expect(logs.map(({ error_code: error }) => error)).toContain('BUSY')
  expect(workspace.rows('SELECT * FROM sync_walks')).toEqual(walks)
  expect(workspace.value('SELECT count(*) FROM orders')).toBe(6)
})

it.skipIf(!HAS_CONTAINERS)(
  'a process in another container keeps its job while it lives, and is followed when it was killed',
  async () => {
    const { workspace, api, running } = await createStanding(['sync'], {
      start: 'start',
      through: CONTAINER,
    })
    api.instead = () => null
    // Longer than who is silent keeps a job.
    await new Promise((wake) => setTimeout(wake, 20_000))
    const beside = await workspace.run(['sync'])
    running.killAll('SIGKILL')
    await running.ended

    const next = await workspace.run(['sync', '--wait'])

    expect([beside.code, beside.logs.at(-1)]).toMatchObject([1, { error_code: 'BUSY' }])
    expect(next.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(6)
  },
)
