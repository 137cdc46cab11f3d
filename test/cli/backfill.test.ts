import { describe, expect, it } from 'vitest'
import { type Asked, createDoor, items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'
import { written } from './written.ts'

const ITEMS = items(10)
const FILTERED = ITEMS.filter(({ state }) => state === 'paid')
const ACME = ['backfill', '--org', 'acme', '--log-level', 'trace']

function list(asked: Asked) {
  return pageOf(asked.query.get('state') === 'paid' ? FILTERED : ITEMS, asked)
}

async function createScene(reply = async (asked: Asked) => list(asked), more: object = {}) {
  const server = await serve(reply)
  const workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1), organization('globex', 2)],
    ...more,
  })
  /** The queries of the requests since the last call. */
  const queries = () => server.asked.splice(0).map(({ query }) => query.toString())
  return { server, workspace, queries }
}

/** A server that does not answer the third page until its door is opened. */
async function createBlockedScene(more: object = {}) {
  const door = createDoor()
  const scene = await createScene(async (asked) => {
    if (asked.page === 3) await door.opened
    return list(asked)
  }, more)
  /** Waits until somebody stands before the door, with two pages written. */
  async function stand(): Promise<void> {
    await scene.server.arrival(({ page }) => page === 3)
    await written(scene.workspace, 3)
  }
  return { ...scene, stand, open: door.open }
}

const WALKS = 'SELECT kind, filters, status, next_page FROM sync_walks ORDER BY id'

describe.concurrent('backfill', () => {
  it('reads the whole list again, of the organizations that are named', async () => {
    const { workspace, queries } = await createScene()

    const backfill = await workspace.run(ACME)

    expect(backfill).toMatchObject({ code: 0, stdout: '' })
    expect(queries()).toEqual(['page=1', 'page=2', 'page=3', 'page=4', 'page=5', 'page=2'])
    expect(workspace.rows('SELECT kind, filters, status, coverage FROM sync_walks')).toEqual([
      { kind: 'full', filters: '{}', status: 'complete', coverage: 'steady' },
    ])
    expect(workspace.rows('SELECT trigger, status, rows_added FROM sync_runs')).toEqual([
      { trigger: 'backfill', status: 'succeeded', rows_added: 10 },
    ])
  })

  it('sends every filter, also one with a name that JavaScript gives a meaning', async () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    const { workspace, server } = await createScene(undefined, {
      collections: { orders: { filters: { constructor: 'c', valueOf: 'v' } }, establishments: false },
    })
    const filters = names.flatMap((name) => ['--filter', `${name}=${name[0]}`])

    const backfill = await workspace.run([...ACME, ...filters, '--filter', '__proto__=second'])
    const other = await workspace.run([...ACME, '--filter', 'constructor=other'])

    expect(backfill.code).toBe(0)
    for (const { query } of server.asked) {
      expect(query.getAll('__proto__')).toEqual(['_', 'second'])
      expect(names.slice(1).map((name) => query.getAll(name))).toEqual([['c'], ['t'], ['h']])
      expect(query.get('valueOf')).toBe('v')
    }
    expect(JSON.parse(String(workspace.value('SELECT filters FROM sync_walks')))).toHaveProperty('__proto__')
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('configured with constructor=c') })
  })

  it('with filters reads a part, and makes no list fresher', async () => {
    const { workspace, queries } = await createScene()
    await workspace.run(['sync', '--org', 'acme'])
    const asOf = workspace.value("SELECT as_of FROM sync_status WHERE organization = 'acme'")
    queries()

    const backfill = await workspace.run([...ACME, '--filter', 'state=paid', '--filter', 'q=a=b'])

    expect(backfill.code).toBe(0)
    expect(queries()).toEqual([
      'state=paid&q=a%3Db&page=1',
      'state=paid&q=a%3Db&page=2',
      'state=paid&q=a%3Db&page=3',
    ])
    const [, partial] = workspace.rows('SELECT kind, filters, status, coverage, rows_seen FROM sync_walks')
    expect(partial).toMatchObject({ kind: 'partial', status: 'complete', coverage: null, rows_seen: 5 })
    expect(JSON.parse(String(partial?.filters))).toEqual({ state: 'paid', q: 'a=b' })
    expect(workspace.value("SELECT as_of FROM sync_status WHERE organization = 'acme'")).toBe(asOf)
    expect(workspace.value('SELECT count(*) FROM orders')).toBe(10)
  })

  it('takes a filter that is typed twice as a list', async () => {
    const { workspace, queries } = await createScene()

    await workspace.run([...ACME, '--filter', 'tag[]=a', '--filter', 'tag[]=b'])

    expect(queries()[0]).toBe('tag%5B%5D=a&tag%5B%5D=b&page=1')
    expect(JSON.parse(String(workspace.value('SELECT filters FROM sync_walks')))).toEqual({
      'tag[]': ['a', 'b'],
    })
  })

  it('puts its filters on top of the configured ones', async () => {
    const { workspace, queries } = await createScene(undefined, {
      collections: { orders: { filters: { state: 'paid' } }, establishments: false },
    })

    await workspace.run([...ACME, '--filter', 'channel=web'])

    expect(queries()[0]).toBe('state=paid&channel=web&page=1')
  })

  it('begins at the page that is named', async () => {
    const { workspace, queries } = await createScene()

    const backfill = await workspace.run([...ACME, '--from-page', '4'])

    expect(backfill.code).toBe(0)
    expect(queries()).toEqual(['page=4', 'page=5'])
    expect(workspace.rows('SELECT kind, status, coverage FROM sync_walks')).toEqual([
      { kind: 'partial', status: 'complete', coverage: null },
    ])
    expect(workspace.rows('SELECT first_page, pages, rows_seen FROM sync_runs')).toEqual([
      { first_page: 4, pages: 2, rows_seen: 4 },
    ])
  })

  it('from a page beyond the end reads nothing, says so, and exits with 0', async () => {
    const { workspace, queries } = await createScene()

    const backfill = await workspace.run(['backfill', '--org', 'acme', '--from-page', '99'])

    expect(backfill.code).toBe(0)
    expect(queries()).toEqual(['page=99'])
    expect(backfill.logs).toContainEqual(
      expect.objectContaining({
        organization: 'acme',
        msg: expect.stringMatching(/page 99 .*beyond the end.*5 pages/),
      }),
    )
    expect(workspace.rows('SELECT status, next_page FROM sync_walks')).toEqual([
      { status: 'complete', next_page: null },
    ])
  })

  it('typed again after an interruption goes on where it stopped', async () => {
    const { workspace, queries, stand, open } = await createBlockedScene()
    const typed = [...ACME, '--filter', 'a=1', '--filter', 'b=2']
    const backfill = workspace.start(typed)
    await stand()
    backfill.kill('SIGTERM')
    await backfill.ended
    queries()
    open()

    // The order in which filters are typed tells nothing.
    const again = await workspace.run([...ACME, '--filter', 'b=2', '--filter', 'a=1'])

    expect(again.code).toBe(0)
    expect(queries().map((query) => new URLSearchParams(query).get('page'))).toEqual(['2', '3', '4', '5'])
    expect(workspace.rows('SELECT status FROM sync_walks')).toEqual([{ status: 'complete' }])
  })

  it('typed again with --restart begins at the first page', async () => {
    const { workspace, queries, stand, open } = await createBlockedScene()
    const backfill = workspace.start(ACME)
    await stand()
    backfill.kill('SIGTERM')
    await backfill.ended
    queries()
    open()

    await workspace.run([...ACME, '--restart'])

    expect(queries()).toEqual(['page=1', 'page=2', 'page=3', 'page=4', 'page=5', 'page=2'])
    expect(workspace.rows('SELECT status FROM sync_walks')).toEqual([
      { status: 'abandoned' },
      { status: 'complete' },
    ])
  })

  it('typed otherwise begins a walk of its own, and leaves the interrupted one open', async () => {
    const { workspace, stand, open } = await createBlockedScene()
    const backfill = workspace.start([...ACME, '--filter', 'a=1'])
    await stand()
    backfill.kill('SIGTERM')
    await backfill.ended
    open()

    await workspace.run([...ACME, '--filter', 'a=2'])

    expect(workspace.rows(WALKS)).toEqual([
      { kind: 'partial', filters: '{"a":"1"}', status: 'open', next_page: 3 },
      { kind: 'partial', filters: '{"a":"2"}', status: 'complete', next_page: null },
    ])
  })

  it("in part leaves a sync's open walk alone; a full one takes its place", async () => {
    const { workspace, queries, stand, open } = await createBlockedScene()
    const sync = workspace.start(['sync', '--org', 'acme'])
    await stand()
    sync.kill('SIGTERM')
    await sync.ended
    open()

    await workspace.run([...ACME, '--from-page', '4'])
    const walk = { kind: 'full', filters: '{}', status: 'open', next_page: 3 }
    expect(workspace.rows(WALKS)[0]).toEqual(walk)

    await workspace.run(ACME)
    expect(workspace.rows(WALKS)[0]).toEqual({ ...walk, status: 'abandoned' })

    queries()
    await workspace.run(['sync', '--org', 'acme'])
    expect(queries()[0]).toBe('page=1')
  })

  it('is not gone on with by a sync, whose resumeWithin does not bound it', async () => {
    const { workspace, queries, stand, open } = await createBlockedScene({ resumeWithin: '1ms' })
    const backfill = workspace.start(ACME)
    await stand()
    backfill.kill('SIGTERM')
    await backfill.ended
    queries()
    open()

    await workspace.run(['sync', '--org', 'acme'])
    expect(queries()[0]).toBe('page=1')

    await workspace.run(ACME)
    expect(queries()[0]).toBe('page=2')
    expect(workspace.rows('SELECT status FROM sync_walks')).toEqual([
      { status: 'complete' },
      { status: 'complete' },
    ])
  })
})
