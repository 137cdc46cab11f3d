import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFailed } from 'vitest'
import { createDice, type Dice } from '../../src/sandbox/dice.ts'
import { type Asked, type ListServer, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'
import { copyOf, expectReadOn } from './crash-scene.ts'

// One sync after another is killed from outside, whatever it is about. `CRASHES=200 vitest run ...` kills more of them.

const KILLS = Number(process.env.CRASHES ?? (process.env.LONG ? 40 : 5))
const SEED = Number(process.env.SEED ?? 1)

const ORGANIZATIONS = [organization('acme', 1), organization('globex', 2)]
const PAGES = 20

/**
 * The list as the walk of that number finds it: every item is another than in the walk before, and a column comes that
 * meets a fraction later on. From the tenth page on keys are texts.
 */
function listOf(walk: number): Record<string, unknown>[] {
  return Array.from({ length: PAGES * 2 }, (_, index) => ({
    id: index < 20 ? index : `no. ${index}`,
    version: walk,
    [`score_${walk}`]: index < 30 ? index : index + 0.5,
  }))
}

/** What is known of a job from outside, between two processes. */
interface Known {
  id: string
  /** Complete walks so far. */
  walks: number
  /** The last page of the open walk that was asked for; 0 where none is open. */
  furthest: number
}

interface Scene {
  dice: Dice
  workspace: Workspace
  server: ListServer
  jobs: Known[]
  lives: number
}

async function createScene(): Promise<Scene> {
  const jobs = ORGANIZATIONS.map(({ id }) => ({ id, walks: 0, furthest: 0 }))
  const server = await serve((asked) => {
    const job = jobs.find(({ id }) => id === asked.organization)
    return pageOf(listOf(job?.walks ?? 0), asked)
  })
  const workspace = createWorkspace()
  return { dice: createDice(SEED), workspace, server, jobs, lives: 0 }
}

/** Each process has an address of its own, so that its requests are told from those that a dead one left in the wires. */
function startLife(scene: Scene) {
  scene.lives++
  const prefix = `/life-${scene.lives}`
  scene.workspace.configure({ baseUrl: scene.server.url + prefix, organizations: ORGANIZATIONS })
  const isOurs = ({ path }: Asked) => path.startsWith(`${prefix}/`)
  return { sync: scene.workspace.start(['sync', '--accept-address']), isOurs }
}

/** Kills a sync at a random moment, or with a random request; false where it had ended before. */
async function liveOnce(scene: Scene, isByRequest: boolean): Promise<boolean> {
  const { dice, server } = scene
  const { sync, isOurs } = startLife(scene)
  const moment = isByRequest ? server.arrivals(isOurs, 1 + dice.below(PAGES)) : sleep(dice.below(900))
  await Promise.race([moment, sync.ended])
  sync.kill('SIGKILL')
  const { code, signal, stderr } = await sync.ended
  expect(signal ?? code, stderr).toBe(signal ? 'SIGKILL' : 0)
  look(scene, server.asked.filter(isOurs))
  return signal !== null
}

/** What must be true after each process, and what the next one will be measured by. */
function look({ workspace, jobs }: Scene, asked: readonly Asked[]): void {
  const copy = copyOf(workspace)
  expect(copy.integrity).toBe('ok')
  for (const job of jobs) {
    const pages = asked.filter(({ organization: id }) => id === job.id).map(({ page }) => page)
    expectReadOn(pages, job.furthest, PAGES)
    const walks = copy.rows('SELECT status FROM sync_walks WHERE organization_id = ? ORDER BY id', job.id)
    job.walks = walks.filter(({ status }) => status === 'complete').length
    job.furthest = walks.at(-1)?.status === 'open' ? Math.max(job.furthest, ...pages) : 0
  }
  copy.close()
}

/** The newest version of every item is live, and each earlier one in the history, once. */
function expectWhole({ workspace, jobs }: Scene): void {
  for (const { id, walks } of jobs) {
    const items = (table: string, order: string) =>
      workspace
        .rows<{ _json: string }>(
          `SELECT _json FROM ${table} WHERE _organization_id = '${id}' ORDER BY ${order}`,
        )
        .map(({ _json: json }) => JSON.parse(json))
    const versions = Array.from({ length: walks }, (_, walk) => listOf(walk))
    expect(items('orders_json JOIN orders USING (_row)', '_row')).toEqual(versions.at(-1))
    expect(items('orders_history', '_valid_to, rowid')).toEqual(versions.slice(0, -1).flat())
  }
  const typed = workspace.value('SELECT count(*) FROM orders WHERE version IS NOT NULL')
  expect(typed).toBe(jobs.length * PAGES * 2)
}

it(`a sync that is killed ${KILLS} times leaves the mirror sound, skips no page and has three asked again at most`, async () => {
  onTestFailed(() => console.error(`The same moments again: SEED=${SEED}`))
  const scene = await createScene()

  let killed = 0
  while (killed < KILLS) if (await liveOnce(scene, killed % 2 === 0)) killed++
  const { sync, isOurs } = startLife(scene)
  const last = await sync.ended

  expect(last.code, last.stderr).toBe(0)
  look(scene, scene.server.asked.filter(isOurs))
  expectWhole(scene)
  const runs = scene.workspace.rows<{ status: string }>('SELECT DISTINCT status FROM sync_runs ORDER BY 1')
  expect(runs).toEqual([{ status: 'interrupted' }, { status: 'succeeded' }])
}, 600_000)
