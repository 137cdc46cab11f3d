import { expect, it } from 'vitest'
import { halt } from '../helpers/halted.ts'
import { type Asked, createDoor, items } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'
import { runs } from '../helpers/system.ts'
import { written } from '../helpers/written.ts'

// Who stands still, or dies where nobody sees it, keeps its jobs until it is found silent. One that is killed on the same machine:
// busy.test.ts.

/** A namespace of processes of its own, as each container on a machine has one. */
const CONTAINER = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
const HAS_CONTAINERS = runs('unshare', ...CONTAINER.slice(1), 'true')

const isSecond = ({ page }: Asked) => page === 2

/** A list whose second page is not given until the door is opened. */
async function createStandstill() {
  const door = createDoor()
  const scene = await createScene({
    list: items(6),
    instead: async (asked) => {
      if (isSecond(asked)) await door.opened
      return null
    },
  })
  return { ...scene, door }
}

it('a process that stands still is overtaken, and writes nothing when it goes on', async () => {
  const { workspace, server, api, door } = await createStandstill()
  const stopped = workspace.start(['sync'])
  await server.arrival(isSecond)
  await written(workspace, 2)
  await halt(stopped, workspace.mirror)
  api.instead = () => null

  const next = await workspace.run(['sync', '--wait'])
  const walks = workspace.rows('SELECT * FROM sync_walks')
  door.open()
  stopped.killAll('SIGCONT')
  const { code, logs } = await stopped.ended

  expect(next.code).toBe(0)
  expect(next.logs.some(({ event }) => event === 'list_busy')).toBe(true)
  expect(code).toBe(1)
  expect(logs.map(({ error_code: error }) => error)).toContain('BUSY')
  expect(workspace.rows('SELECT * FROM sync_walks')).toEqual(walks)
  expect(workspace.value('SELECT count(*) FROM orders')).toBe(6)
}, 120_000)

it.skipIf(!HAS_CONTAINERS)(
  'a process in another container keeps its job while it lives, and is followed when it was killed',
  async () => {
    const { workspace, server, api } = await createStandstill()
    const inside = workspace.start(['sync'], { through: CONTAINER })
    await server.arrival(isSecond)
    api.instead = () => null
    // Longer than who is silent keeps a job.
    await new Promise((wake) => setTimeout(wake, 20_000))
    const beside = await workspace.run(['sync'])
    inside.killAll('SIGKILL')
    await inside.ended

    const next = await workspace.run(['sync', '--wait'])

    expect([beside.code, beside.logs.at(-1)]).toMatchObject([1, { error_code: 'BUSY' }])
    expect(next.code).toBe(0)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(6)
  },
  120_000,
)
