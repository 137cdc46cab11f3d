import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'
import { type CrashScene, createCrashStory, someOf, UNEQUAL } from './crash-scene.ts'

// forget and rebuild die at moments that leave other files, and are typed again: they end as if they had lived. Some of the deaths are
// tried; with LONG=1 all of them. SEED=2 chooses others. Commands that read lists: the histories of test/simulation.

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
  [
    'rebuild',
    {
      command: ['rebuild', 'orders'],
      change: "UPDATE orders SET note = 'by hand' WHERE id > 8; DELETE FROM orders WHERE id = 7",
      least: 8,
      leaves: { typed: [...LIST, ...LIST] },
      // Each row is an old one or a new one.
      holds: ({ rows }) => {
        const others = "SELECT id FROM orders WHERE note NOT IN ('by hand', 'note ' || id)"
        expect(rows(others)).toEqual([])
        expect(Number(rows('SELECT count(*) AS rows FROM orders')[0]?.rows)).toBeGreaterThanOrEqual(1000)
      },
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
