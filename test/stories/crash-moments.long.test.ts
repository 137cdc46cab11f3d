import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFailed } from 'vitest'
import { createDice } from '../../src/sandbox/items.ts'
import { type Asked, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'
import { copyOf } from './crash-scene.ts'

// One sync after another is killed from outside, whatever it is about. `CRASHES=200 vitest run ...` kills more of them.

const KILLS = Number(process.env.CRASHES ?? (process.env.LONG ? 40 : 5))
const SEED = Number(process.env.SEED ?? 1)

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

/** Of each job, the walks that are complete, and the last page of its open walk that was asked for; 0 where none is open. */
const JOBS = [organization('acme', 1), organization('globex', 2)].map((tenant) => ({
  tenant,
  walks: 0,
  furthest: 0,
}))

/**
 * That the requests of a process read a list on: no page left out, and at most three asked again after what others had asked for before it:
 * the last page written, the one being written, and the one in flight. Behind the last page, any still list is asked for one of its pages
 * once more.
 */
function expectReadOn(asked: readonly number[], furthest: number): void {
  const isBehindTheEnd = (asked.at(-2) ?? furthest) === PAGES && asked.at(-1) === Math.round(0.37 * PAGES)
  const pages = isBehindTheEnd ? asked.slice(0, -1) : asked
  const [first = furthest + 1] = pages
  expect(first).toBeLessThanOrEqual(furthest + 1)
  expect(pages).toEqual(pages.map((_, index) => first + index))
  expect(pages.filter((page) => page <= furthest).length).toBeLessThanOrEqual(3)
}

it(`a sync that is killed ${KILLS} times leaves the mirror sound, skips no page and has three asked again at most`, async () => {
  onTestFailed(() => console.error(`The same moments again: SEED=${SEED}`))
  const dice = createDice(String(SEED))
  const server = await serve((asked) => {
    const job = JOBS.find(({ tenant }) => tenant.id === asked.organization)
    return pageOf(listOf(job?.walks ?? 0), asked)
  })
  const workspace = createWorkspace()
  let lives = 0

  /** Lives until it ends, or is killed at a random moment or with a random request; whether it was killed. */
  async function liveOnce(fate: 'by request' | 'at a moment' | 'left alone'): Promise<boolean> {
    // An address of its own, so that its requests are told from those that a dead one left in the wires.
    const prefix = `/life-${++lives}`
    const isOurs = ({ path }: Asked) => path.startsWith(`${prefix}/`)
    workspace.configure({
      baseUrl: server.url + prefix,
      organizations: JOBS.map(({ tenant }) => tenant),
      // On a busy machine a refresh would be due between two pages.
      refresh: false,
    })
    const sync = workspace.start(['sync', '--accept-address'])
    if (fate !== 'left alone') {
      const moment =
        fate === 'by request' ? server.arrival(isOurs, 1 + dice.below(PAGES)) : sleep(dice.below(900))
      await Promise.race([moment, sync.ended])
      sync.kill('SIGKILL')
    }
    const { code, signal, stderr } = await sync.ended
    expect(signal ?? code, stderr).toBe(signal ? 'SIGKILL' : 0)
    look(server.asked.filter(isOurs))
    return signal !== null
  }

  /** What must be true after each process, and what the next one will be measured by. */
  function look(asked: readonly Asked[]): void {
    const copy = copyOf(workspace)
    const statuses = copy
      .prepare('SELECT status FROM sync_walks WHERE organization_id = ? ORDER BY id')
      .pluck()
    for (const job of JOBS) {
      const pages = asked.filter(({ organization: id }) => id === job.tenant.id).map(({ page }) => page)
      expectReadOn(pages, job.furthest)
      const walks = statuses.all(job.tenant.id)
      job.walks = walks.filter((status) => status === 'complete').length
      job.furthest = walks.at(-1) === 'open' ? Math.max(job.furthest, ...pages) : 0
    }
    copy.close()
  }

  let killed = 0
  while (killed < KILLS) if (await liveOnce(killed % 2 === 0 ? 'by request' : 'at a moment')) killed++
  await liveOnce('left alone')

  // The newest version of every item is live, and each earlier one in the history, once.
  for (const { tenant, walks } of JOBS) {
    const items = (table: string, order: string) =>
      workspace
        .rows<{ _json: string }>(
          `SELECT _json FROM ${table} WHERE _organization_id = '${tenant.id}' ORDER BY ${order}`,
        )
        .map(({ _json: json }) => JSON.parse(json))
    const versions = Array.from({ length: walks }, (_, walk) => listOf(walk))
    expect(items('orders_json JOIN orders USING (_row)', '_row')).toEqual(versions.at(-1))
    expect(items('orders_history', '_valid_to, rowid')).toEqual(versions.slice(0, -1).flat())
  }
  const typed = workspace.value('SELECT count(*) FROM orders WHERE version IS NOT NULL')
  expect(typed).toBe(JOBS.length * PAGES * 2)
}, 600_000)
