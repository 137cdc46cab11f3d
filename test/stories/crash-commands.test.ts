import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'
import { type CrashScene, createCrashStory, someOf, UNEQUAL } from './crash-scene.ts'

// forget and rebuild die at moments that leave other files, and are typed again: they end as if they had lived. Some of the deaths are
// tried; with LONG=1 all of them. SEED=2 chooses others. verify, which writes no more than whose the list is, is killed between two
// pages. Commands that sync lists: the histories of test/simulation.

const ORGANIZATIONS = [organization('acme', 1), organization('globex', 2)]

/** Deaths of each command. */
const TRIED = 5

/** More rows than are forgotten, or written anew, in one transaction. */
const LIST = Array.from({ length: 501 }, (_, index) => ({ id: index + 1, note: `note ${index + 1}` }))
const reply: CrashScene['reply'] = (asked) => pageOf(LIST, asked, { perPage: 501 })

/** What people see, but for times and for who did it. */
function seen({ rows }: Workspace): unknown {
  return {
    raw: rows('SELECT _organization_id, id, _json FROM orders_raw ORDER BY 1, 2'),
    typed: rows('SELECT _organization_id, id, note FROM orders ORDER BY 1, 2'),
    jobs: rows('SELECT organization_id, rows, rows_added, owner FROM sync_jobs ORDER BY 1'),
    ledger: rows('SELECT DISTINCT organization_id FROM sync_walks ORDER BY 1'),
    pagesOfNoWalk: rows(
      'SELECT count(*) AS pages FROM sync_pages WHERE walk_id NOT IN (SELECT id FROM sync_walks)',
    ),
    columns: rows('SELECT collection, "column", type FROM sync_columns ORDER BY 1, 2'),
  }
}

interface Scene extends CrashScene {
  /** What was done to the mirror by hand. */
  change?: string
  /** How many different deaths it has at least. */
  least: number
  /** What it leaves where it lives. */
  leaves: object
}

async function prepare(change = ''): Promise<Workspace> {
  const server = await serve((asked) => pageOf(LIST, asked, { perPage: 501 }))
  const workspace = createWorkspace({ baseUrl: server.url, organizations: ORGANIZATIONS })
  await workspace.run(['sync'])
  workspace.change(change)
  return workspace
}

const SCENES: [name: string, scene: Scene][] = [
  [
    'forget',
    {
      command: ['forget', '--org', 'acme', '--yes'],
      least: 10,
      leaves: { jobs: [{ rows: 0 }, { rows: 501 }], raw: { length: 501 }, ledger: { length: 1 } },
      holds: ({ rows }) => expect(rows(UNEQUAL)).toEqual([]),
    },
  ],
]

describe.each(SCENES)('%s', async (_name, scene) => {
  const prepared = await prepare(scene.change)
  const story = await createCrashStory({
    ...scene,
    settings: { organizations: ORGANIZATIONS },
    prepared,
    reply,
  })
  const whole = seen(story.undisturbed.workspace)

  it(`ends well where it lives, and dies in ${scene.least} ways at least`, () => {
    expect(story.undisturbed.ended.code, story.undisturbed.ended.stderr).toBe(0)
    expect(story.deaths.length).toBeGreaterThanOrEqual(scene.least)
    expect(whole).toMatchObject(scene.leaves)
  })

  it.each(someOf(story.deaths, TRIED))(
    'ends as if it had lived, when it is typed again: $place',
    async (death) => {
      const { workspace } = await story.goOn(death)

      expect(seen(workspace)).toEqual(whole)
    },
  )
})

it('verify that is killed between two pages leaves all as it was, and the next one compares the whole list', async () => {
  const { workspace, api, server } = await createScene({ list: items(6) })
  await workspace.run(['sync'])
  const kept = () =>
    ['sync_jobs', 'sync_walks', 'sync_runs', 'orders_raw', 'orders'].map((table) =>
      workspace.rows(`SELECT * FROM ${table}`),
    )
  const before = kept()
  api.instead = ({ page }) => (page === 2 ? new Promise(() => {}) : null)
  server.asked.length = 0
  const verify = workspace.start(['verify'])
  await server.arrival(({ page }) => page === 2)

  verify.kill('SIGKILL')

  expect(await verify.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' })
  expect(workspace.value('SELECT verifying FROM sync_jobs')).toBe(1)
  api.instead = () => null
  api.list = [{ id: 1, state: 'changed' }, ...items(7).slice(2)]
  const next = await workspace.run(['verify'])
  expect(next.stdout.split('\n').slice(0, -2)).toEqual([
    'missing acme orders 7',
    'extra acme orders 2',
    'different acme orders 1 state',
  ])
  expect(next.code).toBe(5)
  expect(kept()).toEqual(before)
  expect((await workspace.run(['sync'])).code).toBe(0)
})
