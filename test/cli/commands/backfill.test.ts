import { describe, expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { createScene, GLOBEX, ACME as ORGANIZATION, sceneTests } from '../../helpers/scene.ts'

// What is typed, what is sent, and what is told. Which walk goes on with which: test/sync/resume.test.ts and test/sync/backfill.test.ts.

const ACME = ['backfill', '--org', 'acme', '--log-level', 'trace']
const PAGES = ['page=1', 'page=2', 'page=3', 'page=4', 'page=5', 'page=2']
const WALKS = 'SELECT kind, filters, status, coverage FROM sync_walks ORDER BY id'

const it = sceneTests().extend('backfill', async () => {
  const scene = await createScene({ list: items(10), settings: { organizations: [ORGANIZATION, GLOBEX] } })
  return {
    ...scene.workspace,
    ...scene,
    /** The queries of the requests since the last call. */
    queries: () => scene.server.asked.splice(0).map(({ query }) => query.toString()),
    /** From the third page on, which keeps what is typed next from its end; or no more. */
    breakOff: (isBroken: boolean) => {
      scene.api.instead = ({ page }) => (isBroken && page === 3 ? { status: 403, body: {} } : null)
    },
  }
})

describe('backfill', () => {
  it('reads the whole list again, of the organizations that are named', async ({ backfill }) => {
    const { run, queries, rows } = backfill

    expect(await run(ACME)).toMatchObject({ code: 0, stdout: '' })
    expect(queries()).toEqual(PAGES)
    expect(rows(WALKS)).toEqual([{ kind: 'full', filters: '{}', status: 'complete', coverage: 'steady' }])
    expect(rows('SELECT trigger, status, rows_added FROM sync_runs')).toEqual([
      { trigger: 'backfill', status: 'succeeded', rows_added: 10 },
    ])
  })

  it('sends every filter on top of the configured ones, also one with a name that JavaScript gives a meaning', async ({
    backfill,
  }) => {
    const { run, server, configure, value } = backfill
    const filters = { constructor: 'c', valueOf: 'v' }
    configure({ collections: { orders: { filters }, establishments: false } })
    const typed = ['__proto__=_', '__proto__=second', 'constructor=c', 'toString=t', 'q=a=b', 'tag[]=a']

    const { code } = await run([...ACME, ...typed.flatMap((one) => ['--filter', one])])
    const other = await run([...ACME, '--filter', 'constructor=other'])

    expect(code).toBe(0)
    for (const { query } of server.asked) {
      const sent = [...query].filter(([name]) => name !== 'page').map((one) => one.join('='))
      expect(sent.toSorted()).toEqual([...typed, 'valueOf=v'].toSorted())
    }
    const kept = JSON.parse(String(value('SELECT filters FROM sync_walks'))) as object
    expect(Object.entries(kept)).toContainEqual(['__proto__', ['_', 'second']])
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('configured with constructor=c') })
  })

  it('with filters reads a part, and makes no list fresher', async ({ backfill }) => {
    const { run, queries, rows, value } = backfill
    await run(['sync', '--org', 'acme'])
    const asOf = () => value("SELECT as_of FROM sync_status WHERE organization = 'acme'")
    const before = asOf()
    queries()

    expect((await run([...ACME, '--filter', 'state=paid'])).code).toBe(0)

    expect(queries()[0]).toBe('state=paid&page=1')
    expect(rows(WALKS).at(-1)).toEqual({
      kind: 'partial',
      filters: '{"state":"paid"}',
      status: 'complete',
      coverage: null,
    })
    expect(asOf()).toBe(before)
    expect(value('SELECT count(*) FROM orders')).toBe(10)
  })

  it('begins at the page that is named; from one beyond the end it reads nothing, says so, and exits with 0', async ({
    backfill,
  }) => {
    const { run, queries, rows } = backfill

    expect((await run([...ACME, '--from-page', '4'])).code).toBe(0)
    expect(queries()).toEqual(['page=4', 'page=5'])
    expect(rows('SELECT r.first_page, r.pages, r.rows_seen, kind FROM sync_runs r, sync_walks')).toEqual([
      { first_page: 4, pages: 2, rows_seen: 4, kind: 'partial' },
    ])

    const { code, logs } = await run([...ACME, '--from-page', '99'])
    expect([code, queries()]).toEqual([0, ['page=99']])
    const msg = expect.stringMatching(/page 99 .*beyond the end.*5 pages/) as string
    expect(logs).toContainEqual(expect.objectContaining({ organization: 'acme', msg }))
  })

  it('typed again goes on where it stopped, begins anew with --restart, and typed otherwise is another one', async ({
    backfill,
  }) => {
    const { run, queries, rows, breakOff } = backfill
    breakOff(true)
    for (const more of [['--filter', 'a=1', '--filter', 'b=2'], ['--filter', 'a=2'], []])
      await run([...ACME, ...more])
    breakOff(false)
    queries()

    // The order in which filters are typed tells nothing.
    await run([...ACME, '--filter', 'b=2', '--filter', 'a=1'])
    expect(queries().map((query) => new URLSearchParams(query).get('page'))).toEqual(['2', '3', '4', '5'])
    await run([...ACME, '--restart'])
    expect(queries()).toEqual(PAGES)
    expect(rows('SELECT filters, status, next_page FROM sync_walks ORDER BY id')).toEqual([
      { filters: '{"a":"1","b":"2"}', status: 'complete', next_page: null },
      { filters: '{"a":"2"}', status: 'open', next_page: 3 },
      { filters: '{}', status: 'abandoned', next_page: 3 },
      { filters: '{}', status: 'complete', next_page: null },
    ])
  })

  it('is gone on with by no sync, whose resumeWithin does not bound it', async ({ backfill }) => {
    const { run, queries, configure, breakOff } = backfill
    configure({ organizations: [ORGANIZATION], resumeWithin: '1ms' })
    breakOff(true)
    await run(ACME)
    breakOff(false)
    queries()

    await run(['sync'])
    expect(queries()[0]).toBe('page=1')
    await run(ACME)
    expect(queries()[0]).toBe('page=2')
  })
})
