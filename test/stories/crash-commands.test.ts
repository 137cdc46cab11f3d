import { describe, expect, it } from 'vitest'
import { type Asked, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization, type Settings, type Workspace } from '../helpers/workspace.ts'
import { type CrashScene, createCrashStory, someOf, UNEQUAL } from './crash-scene.ts'

// A command on a mirror that holds something dies at moments that leave other files, and is typed again: it ends as if it had
// lived. Some of them are tried; with LONG=1 all of them. SEED=2 chooses others.

const ORGANIZATIONS = [organization('acme', 1), organization('globex', 2)]

/** Deaths of each command. */
const TRIED = 5

/** More rows than are forgotten, or written anew, in one transaction. */
const MANY = 501

const id = (index: number) => index + 1
const FIRST = Array.from({ length: MANY }, (_, index) => ({ id: id(index), note: `note ${id(index)}` }))

/** Some have changed since, and one came, with a field that is new. */
const CHANGED = [
  ...FIRST.map((order) => (order.id % 100 === 0 ? { ...order, note: 'another' } : order)),
  { id: 1000, note: 'late', extra: 'a field' },
]

/** A few have left, which are more than the brake lets go. */
const SHORTER = CHANGED.slice(6)

/** Newest first; since then thirty have come. */
const NEWEST_FIRST = Array.from({ length: 70 }, (_, index) => ({ id: 70 - index, note: 'a note' }))

type Lists = (asked: Asked) => unknown[]

const isAcme = ({ organization: one }: Asked) => one === ORGANIZATIONS[0]?.id
const shorter: Lists = (asked) => (isAcme(asked) ? SHORTER : FIRST)

const SETTINGS: Partial<Settings> = {
  organizations: ORGANIZATIONS,
  removals: { brakePercent: 1, brakeRows: 5 },
}

/** What people see, but for times and for who did it. */
function seen({ rows }: Workspace): unknown {
  return {
    raw: rows('SELECT _organization_id, id, _json FROM orders_raw ORDER BY 1, 2'),
    typed: rows('SELECT _organization_id, id, note FROM orders ORDER BY 1, 2'),
    history: rows('SELECT _organization_id, id, _json, _reason FROM orders_history ORDER BY 1, 2, _valid_to'),
    jobs: rows('SELECT organization_id, rows, rows_added, removals_held, owner FROM sync_jobs ORDER BY 1'),
    missing: rows('SELECT organization_id, key, state FROM sync_missing ORDER BY 1, 2'),
    open: rows("SELECT id FROM sync_walks WHERE status = 'open'"),
    running: rows("SELECT id FROM sync_runs WHERE status = 'running'"),
    ledger: rows('SELECT DISTINCT organization_id FROM sync_walks ORDER BY 1'),
    pagesOfNoWalk: rows(
      'SELECT count(*) AS pages FROM sync_pages WHERE walk_id NOT IN (SELECT id FROM sync_walks)',
    ),
    fresh: rows('SELECT organization, fresh_as_of > as_of AS isFresh FROM sync_status ORDER BY 1'),
    columns: rows('SELECT collection, "column", type FROM sync_columns ORDER BY 1, 2'),
  }
}

/** Nothing is lost before it is back, or before the history has it. */
const NOTHING_LOST = `
  WITH known AS (SELECT _organization_id, id FROM orders_raw UNION SELECT _organization_id, id FROM orders_history)
  SELECT count(*) AS rows FROM known
`

interface Scene extends Omit<CrashScene, 'reply' | 'prepared'> {
  /** What was synced before, and what it finds. */
  lists: [Lists, ...Lists[]]
  now?: Lists
  settings?: Partial<Settings>
  perPage: number
  /** What was done to the mirror by hand. */
  change?: string
  /** How many different deaths it has at least. */
  least: number
  /** What it leaves where it lives. */
  leaves: object
}

/** A mirror of the lists that were synced before. */
async function prepare({ lists, perPage, change }: Scene, settings: Partial<Settings>): Promise<Workspace> {
  let [list] = lists
  const server = await serve((asked) => pageOf(list(asked), asked, { perPage }))
  const workspace = createWorkspace({ baseUrl: server.url, organizations: ORGANIZATIONS, ...settings })
  for (list of lists) await workspace.run(['sync'])
  if (change) workspace.change(change)
  return workspace
}

const SCENES: [name: string, scene: Scene][] = [
  [
    'a sync of rows that changed and came',
    {
      command: ['sync'],
      lists: [() => FIRST],
      now: () => CHANGED,
      perPage: 200,
      isFromRequest: true,
      least: 12,
      leaves: { jobs: [{ rows: 502 }, { rows: 502 }], history: { length: 10 } },
    },
  ],
  [
    'a sync that removes what was held back',
    {
      command: ['sync', '--org', 'acme', '--accept-removals'],
      lists: [() => FIRST, shorter, shorter],
      now: shorter,
      perPage: 200,
      isFromRequest: true,
      least: 8,
      leaves: { jobs: [{ rows: 496, removals_held: 0 }, { rows: 501 }], missing: [] },
      holds: ({ rows }) => {
        expect(rows(UNEQUAL)).toEqual([])
        expect(rows(NOTHING_LOST)).toEqual([{ rows: 502 + 501 }])
      },
    },
  ],
  [
    'verify',
    {
      command: ['verify'],
      lists: [() => FIRST],
      perPage: 200,
      least: 5,
      leaves: { jobs: [{ rows: 501 }, { rows: 501 }], history: [] },
    },
  ],
  [
    'forget',
    {
      command: ['forget', '--org', 'acme', '--yes'],
      lists: [() => FIRST],
      perPage: 501,
      least: 10,
      leaves: { jobs: [{ rows: 0 }, { rows: 501 }], raw: { length: 501 }, ledger: { length: 1 } },
      holds: ({ rows }) => expect(rows(UNEQUAL)).toEqual([]),
    },
  ],
  [
    'rebuild',
    {
      command: ['rebuild', 'orders'],
      lists: [() => FIRST],
      perPage: 501,
      change: "UPDATE orders SET note = 'by hand' WHERE id > 8; DELETE FROM orders WHERE id = 7",
      least: 8,
      leaves: { typed: [...FIRST, ...FIRST] },
      // Each row is an old one or a new one.
      holds: ({ rows }) => {
        const others = "SELECT id FROM orders WHERE note NOT IN ('by hand', 'note ' || id)"
        expect(rows(others)).toEqual([])
        expect(Number(rows('SELECT count(*) AS rows FROM orders')[0]?.rows)).toBeGreaterThanOrEqual(1000)
      },
    },
  ],
  [
    'sync --refresh',
    {
      command: ['sync', '--refresh'],
      lists: [() => NEWEST_FIRST.slice(30)],
      now: () => NEWEST_FIRST,
      settings: { organizations: ORGANIZATIONS.slice(0, 1), refresh: {} },
      perPage: 5,
      isFromRequest: true,
      least: 10,
      leaves: { jobs: [{ rows: 70 }], fresh: [{ isFresh: 1 }], missing: [] },
      // It is not said to be fresh before all that is new is there.
      holds: ({ rows }) => {
        const isFresh = rows('SELECT 1 FROM sync_status WHERE fresh_as_of > as_of').length > 0
        if (isFresh) expect(rows('SELECT count(*) AS rows FROM orders')).toEqual([{ rows: 70 }])
      },
    },
  ],
]

describe.each(SCENES)('%s', async (_name, scene) => {
  const { lists, now = lists[0], perPage } = scene
  const settings = { ...SETTINGS, ...scene.settings }
  const reply = (asked: Asked) => pageOf(now(asked), asked, { perPage })
  const prepared = await prepare(scene, settings)
  const story = await createCrashStory({ ...scene, settings, prepared, reply })
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
