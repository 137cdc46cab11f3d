import { expect, it } from 'vitest'
import { CONTAINER, HAS_CONTAINERS } from '../helpers/processes.ts'
import { createStanding } from '../helpers/scene.ts'

// Who dies where nobody sees it keeps its jobs until it is found silent. One that stands still, and writes nothing when it goes on:
// test/store/contract-leases.ts; one that is killed on the same machine: busy.test.ts.

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
