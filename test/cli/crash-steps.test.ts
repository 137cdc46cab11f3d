import { describe, expect, it } from 'vitest'
import type { Patch } from '../helpers/patch.ts'
import { DIE, dyingAfter, dyingBefore, dyingWith } from '../helpers/planted.ts'
import { createCrashScene, endsOf, expectOneReading, expectWhole, liveAndDie, ORDERS } from './crash-scene.ts'
import { pageOf, type Reply } from './list-server.ts'
import { written } from './written.ts'

// Each test has one process after another die on one mirror, each at the next step, and a last one live: what the dead
// leave, the next has to cope with.

const WALK = 'src/sync/walk.ts'
const JOB = 'src/sync/job.ts'
const MIRROR = 'src/store/sqlite/store.ts'
const SAVING = 'src/store/sqlite/walks/commit.ts'
const TABLES = 'src/store/sqlite/tables/declarations.ts'
const REBUILD = 'src/store/sqlite/tables/rebuild-table.ts'
const ALTER = 'src/store/sqlite/tables/alter.ts'
const VIEWS = 'src/store/sqlite/tables/array-views.ts'
const DATABASE = 'src/store/sqlite/file/open.ts'
const MIGRATE = 'src/store/sqlite/migrations/migrate.ts'
const REGISTRY = 'src/store/sqlite/tokens.ts'
const BUDGETS = 'src/store/sqlite/tokens.ts'
const OWNERS = 'src/store/sqlite/leases.ts'
const LOCK_FILE = 'src/store/sqlite/file/lock-file.ts'

const ON_THIRD = 'page.number === 3'
const PAGE_IS_THIRD = 'page.page === 3'
const ENTRY_IS_THIRD = 'entry.page === 3'

type Step = [where: string, ...patches: Patch[]]

const OF_A_NEW_MIRROR: Step[] = [
  ['with an empty file', dyingBefore(DATABASE, 'if (isNew) connection.pragma(')],
  ['with our mark in it', dyingBefore(DATABASE, "connection.pragma('journal_mode = WAL')")],
  ['in WAL mode', dyingBefore(DATABASE, "connection.pragma('synchronous = NORMAL')")],
  [
    'between two tables',
    {
      file: MIGRATE,
      find: "connection.exec(fs.readFileSync(new URL(step, FOLDER), 'utf8'))",
      replace: `{
        connection.exec(fs.readFileSync(new URL(step, FOLDER), 'utf8').split('CREATE TABLE sync_walks')[0])
        ${DIE}
      }`,
    },
  ],
  ['before its version', dyingBefore(MIGRATE, 'connection.pragma(`user_version = ')],
  ['before the commit', dyingBefore(MIGRATE, '})\n  run.immediate()')],
  ['after the commit', dyingAfter(MIGRATE, 'run.immediate()')],
  [
    'noting the address',
    dyingBefore('src/store/sqlite/tables/configured.ts', 'for (const { name, key } of collections) {'),
  ],
  ['making the tables', dyingBefore(TABLES, 'connection.exec(historyIndexSql(shape))')],
  ['registering', dyingBefore(REGISTRY, 'for (const { id, name, collections } of organizations) {')],
  [
    'with all registered',
    dyingBefore('src/cli/session.ts', 'const readCredentials = createCredentialsReader('),
  ],
  ['noting the token', dyingAfter(REGISTRY, 'liftReplaced.run(organizationId, fingerprint)')],
]

const OF_A_BEGINNING: Step[] = [
  ['before the lock', dyingBefore(LOCK_FILE, "connection.exec('BEGIN IMMEDIATE')")],
  ['with the lock', dyingBefore(OWNERS, 'const ownerOf = connection')],
  ['taking the job', dyingAfter(OWNERS, 'setOwner.run(organizationId, collection, name, isVerify ? 1 : 0)')],
  ['with the job taken', dyingBefore('src/sync/lease/acquire.ts', 'if (lease) return lease')],
  ['before the walk', dyingBefore(JOB, 'const { runId, walk } = await store.beginRun(lease, {')],
  ['beginning the walk', dyingWith(MIRROR, 'walks.begin(job, begin, at)')],
  ['beginning the run', dyingWith(MIRROR, 'runs.begin(job, walk, begin, at)')],
]

const OF_A_PAGE: Step[] = [
  ['before the first request', dyingBefore(JOB, 'observer.onStart(walk)')],
  ['before the transaction', dyingBefore(WALK, 'const result = await handler.handle(', ON_THIRD)],
  ['before the rows', dyingBefore(SAVING, 'const saved = saveRows(', PAGE_IS_THIRD)],
  ['after the rows', dyingBefore(SAVING, 'const newRejects = saveRejects(', PAGE_IS_THIRD)],
  ['before the checkpoint', dyingBefore(SAVING, 'addAnswer.run(', ENTRY_IS_THIRD)],
  ['within the line of the ledger', dyingBefore(SAVING, 'countAnswer.run(', ENTRY_IS_THIRD)],
  ['before the commit', dyingBefore(SAVING, 'return saved\n    },\n    refreshed(', ENTRY_IS_THIRD)],
  ['after the commit', dyingBefore(WALK, 'seen.add(entry)', ON_THIRD)],
  [
    'before the walk is complete',
    dyingBefore('src/sync/end-walk.ts', 'const { heldBack } = await store.closeWalk('),
  ],
  [
    'completing the walk',
    dyingAfter('src/store/sqlite/walks/walks.ts', 'walks.complete(walkId, runId, outcome, at)'),
  ],
]

/** Of a table that is copied, where `when` is true of it. */
const ofCopy = (what: string, when: string): Step[] => [
  [`beginning a copy ${what}`, dyingBefore(REBUILD, 'copyRows(connection, table, types, onRows)\n', when)],
  [`with a copy ${what}`, dyingAfter(REBUILD, 'copyRows(connection, table, types, onRows)\n', when)],
  ...['DROP', 'ALTER', 'CREATE'].map(
    (verb): Step => [
      `${verb} for a copy ${what}`,
      dyingAfter(REBUILD, 'connection.exec(sql)', `${when} && sql.startsWith('${verb}')`),
    ],
  ),
]

const OF_THE_TABLES: Step[] = [
  ['adding a column', dyingAfter(ALTER, 'addColumn(connection, table, column)', "column.name === 'note'")],
  ...ofCopy('with a wider column', "table === 'orders' && types.has('price')").slice(0, 4),
  ['making a view', dyingBefore(VIEWS, 'connection.exec(viewSql(')],
]

const OF_A_KEY: Step[] = [
  ...ofCopy('with another key', "table === 'orders_history' && types.has('id')"),
  ['with all three tables changed', dyingBefore(ALTER, 'return true\n')],
  ['with the rows not written yet', dyingAfter(ALTER, 'alterTables(connection, plan)')],
]

const BETWEEN_PASSES: Step[] = [
  ['before the second', dyingBefore(WALK, 'checkpoint = nextPass(end)')],
  [
    'beginning the second',
    dyingWith(MIRROR, 'commit.checkpoint(page.walk.id, page.next, new Date(page.at).toISOString())'),
  ],
  ['with the second begun', dyingBefore(WALK, 'observer.onPassAgain(verdict.why, checkpoint.pass)')],
]

const OF_A_HOLD: Step[] = [
  ['writing it', dyingAfter(REGISTRY, 'hold.run(at, reason, id, { fingerprint })')],
  ['with it written', dyingAfter('src/api/token-hold.ts', 'await store.hold(why)')],
  ['lifting it', dyingAfter(REGISTRY, 'liftHold.run(fingerprint)')],
  ['with it lifted', dyingAfter('src/api/token-hold.ts', 'await store.lift()')],
]

const OF_A_PAUSE: Step[] = [
  ['writing it', dyingBefore(BUDGETS, 'return versionOf({ closed_until, known })', 'closedUntil > 0')],
  [
    'with it written',
    dyingAfter('src/api/rate/permits.ts', "await write('report')", 'known().closedUntil > now()'),
  ],
]

const OF_AN_END: Step[] = [
  [
    'between walk and run',
    dyingBefore(JOB, 'const outcome = runOutcome(result.error, result.heldBack, traffic)'),
  ],
  ['finishing the run', dyingWith(MIRROR, 'runs.finish(run, outcome, time())')],
]

const OF_A_FINISHED_RUN: Step[] = [
  ['when it is finished', dyingBefore(JOB, 'if (!result.error) await store.prune(job)')],
  ['taking old lines away', dyingWith(MIRROR, 'pruneWalks(job, times)')],
  ['letting go of the job', dyingWith(MIRROR, 'leases.release(organization.id, collection.name)')],
  ['letting go of the lock', dyingAfter(LOCK_FILE, 'lock.close()')],
]

describe.concurrent('a sync that dies', () => {
  it.each<[string, Step[]]>([
    ['a page', OF_A_PAGE],
    ['the tables', OF_THE_TABLES],
    ['a key that becomes text', OF_A_KEY],
  ])(
    'at any step of %s loses nothing, skips no page and has three asked again at most',
    async (_of, steps) => {
      const scene = await createCrashScene()

      const lives = await liveAndDie(scene, steps)

      expectOneReading(lives, 5)
      expectWhole(scene.workspace)
      expect(endsOf(scene.workspace)).toEqual({
        runs: [...steps.map(() => 'interrupted'), 'succeeded'],
        walks: ['complete'],
      })
    },
  )

  it.each<[string, Step[]]>([
    ['making the mirror', OF_A_NEW_MIRROR],
    ['its beginning', OF_A_BEGINNING],
  ])('at any step of %s leaves no run', async (_of, steps) => {
    const scene = await createCrashScene()

    const lives = await liveAndDie(scene, steps)

    expectOneReading(lives, 5)
    expectWhole(scene.workspace)
    expect(endsOf(scene.workspace)).toEqual({ runs: ['succeeded'], walks: ['complete'] })
  })

  it.each<[string, Step[], Reply, number[][]]>([
    [
      'a hold that a refused token leaves',
      OF_A_HOLD,
      { status: 401, body: {} },
      [[1, 2, 3], [2, 3], [2], [2], [2, 3, 4, 5, 2]],
    ],
    [
      'a pause that the server asks for',
      OF_A_PAUSE,
      { status: 429, headers: { 'retry-after': '0' }, body: {} },
      [
        [1, 2, 3],
        [2, 3],
        [2, 3, 4, 5, 2],
      ],
    ],
  ])('at any step of %s loses nothing', async (_of, steps, refusal, pages) => {
    let refused = 0
    const scene = await createCrashScene({
      // Once the second page is written, so that each life goes on there.
      instead: ({ page }, _count, workspace) =>
        page === 3 && ++refused <= 2 ? written(workspace, 3).then(() => refusal) : undefined,
    })

    const lives = await liveAndDie(scene, steps)

    expect(lives.map((life) => life.pages)).toEqual(pages)
    expectWhole(scene.workspace)
    expect(scene.workspace.value('SELECT count(*) FROM organizations WHERE held_since IS NOT NULL')).toBe(0)
    expect(endsOf(scene.workspace)).toEqual({
      runs: [...steps.map(() => 'interrupted'), 'succeeded'],
      walks: ['complete'],
    })
  })

  it.each<[string, Step[], string]>([
    ['between the end of its walk and its own', OF_AN_END, 'interrupted'],
    ['behind its own end', OF_A_FINISHED_RUN, 'succeeded'],
  ])('%s leaves a whole walk, and the next begins another', async (_when, steps, status) => {
    const scene = await createCrashScene()

    const lives = await liveAndDie(scene, steps)

    expect(lives.map(({ pages }) => pages)).toEqual(lives.map(() => [1, 2, 3, 4, 5, 2]))
    expectWhole(scene.workspace)
    expect(endsOf(scene.workspace)).toEqual({
      runs: [...steps.map(() => status), 'succeeded'],
      walks: lives.map(() => 'complete'),
    })
  })

  it('between two passes has neither asked for again', async () => {
    // The first pass ends before its own total.
    const scene = await createCrashScene({
      instead: (asked, count) =>
        count === 5 ? pageOf(ORDERS.slice(0, -1), asked, { total: ORDERS.length }) : undefined,
    })

    const lives = await liveAndDie(scene, BETWEEN_PASSES)

    expect(lives.map(({ pages }) => pages)).toEqual([[1, 2, 3, 4, 5], [], [], [1, 2, 3, 4, 5, 2]])
    expectWhole(scene.workspace)
    expect(scene.workspace.rows('SELECT status, coverage, passes FROM sync_walks')).toEqual([
      { status: 'complete', coverage: 'repaired', passes: 2 },
    ])
  })
})
