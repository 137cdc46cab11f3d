import { expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { createScene, GLOBEX, ACME as ORGANIZATION, sceneTests } from '../../helpers/scene.ts'

// What is typed, what is sent, and what is told. Which walk goes on with which: test/sync/resume.test.ts.

const ACME = ['backfill', '--org', 'acme', '--log-level', 'trace']
const PAGES = ['page=1', 'page=2', 'page=3', 'page=4', 'page=5', 'page=2']

const it = sceneTests().extend('backfill', async () => {
  const scene = await createScene({ list: items(10), settings: { organizations: [ORGANIZATION, GLOBEX] } })
  return {
    ...scene.workspace,
    ...scene,
    /** The queries of the requests since the last call. */
    queries: () => scene.server.asked.splice(0).map(({ query }) => query.toString()),
  }
})

it('reads the whole list again, of the organizations that are named; with filters or a start page a part, which makes no list fresher', async ({
  backfill: { run, queries, rows, value },
}) => {
  const asOf = () => rows("SELECT as_of, fresh_as_of FROM sync_status WHERE organization = 'acme'")

  expect(await run(ACME)).toMatchObject({ code: 0, stdout: '' })
  expect(queries()).toEqual(PAGES)
  const before = asOf()
  await run([...ACME, '--filter', 'state=paid'])
  expect(queries()[0]).toBe('state=paid&page=1')
  await run([...ACME, '--from-page', '4'])
  expect(queries()).toEqual(['page=4', 'page=5'])

  expect(rows('SELECT kind, filters, status, coverage FROM sync_walks ORDER BY id')).toEqual([
    { kind: 'full', filters: '{}', status: 'complete', coverage: 'steady' },
    { kind: 'partial', filters: '{"state":"paid"}', status: 'complete', coverage: null },
    { kind: 'partial', filters: '{}', status: 'complete', coverage: null },
  ])
  const runs = rows('SELECT DISTINCT trigger, status FROM sync_runs')
  expect(runs).toEqual([{ trigger: 'backfill', status: 'succeeded' }])
  expect([asOf(), value('SELECT count(*) FROM orders')]).toEqual([before, 10])
})

it('from a page beyond the end reads nothing, says so, and exits with 0', async ({
  backfill: { run, queries },
}) => {
  const { code, logs } = await run([...ACME, '--from-page', '99'])

  expect([code, queries()]).toEqual([0, ['page=99']])
  const msg = expect.stringMatching(/page 99 .*beyond the end.*5 pages/) as string
  expect(logs).toContainEqual(expect.objectContaining({ organization: 'acme', msg }))
})

it('sends every filter on top of the configured ones, also one with a name that JavaScript gives a meaning', async ({
  backfill: { run, server, configure, value },
}) => {
  const filters = { constructor: 'c', valueOf: 'v' }
  configure({ collections: { orders: { filters }, establishments: false } })
  const typed = ['__proto__=_', '__proto__=second', 'constructor=c', 'toString=t', 'q=a=b', 'tag[]=a']

  const { code } = await run([...ACME, ...typed.flatMap((one) => ['--filter', one])])

  expect(code).toBe(0)
  for (const { query } of server.asked) {
    const sent = [...query].filter(([name]) => name !== 'page').map((one) => one.join('='))
    expect(sent.toSorted()).toEqual([...typed, 'valueOf=v'].toSorted())
  }
  const kept = JSON.parse(String(value('SELECT filters FROM sync_walks'))) as object
  expect(Object.entries(kept)).toContainEqual(['__proto__', ['_', 'second']])
})

it('typed again goes on where it stopped, begins anew with --restart, and typed otherwise is another one, as is a sync', async ({
  backfill: { run, queries, rows, api },
}) => {
  api.instead = ({ page }) => (page === 3 ? { status: 403, body: {} } : null)
  for (const more of [['--filter', 'a=1', '--filter', 'b=2'], ['--filter', 'a=2'], []])
    await run([...ACME, ...more])
  api.instead = () => null
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
  await run(['sync', '--org', 'acme'])
  expect(queries()[0]).toBe('page=1')
})
