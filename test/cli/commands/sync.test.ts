import { expect } from 'vitest'
import { items, pageOf } from '../../helpers/list-server.ts'
import { sceneTests } from '../../helpers/scene.ts'

const it = sceneTests()

// What sync and status say of a list that somebody has to look at. How walks are judged: test/sync; notes: test/report/column-notes.test.ts.

const SYNC = 'admin-mirror sync --org acme --collection orders'
const typed = (line: string) => line.split(' ').slice(1)

it('removals beyond the configured brake are held back, and told by sync and status, with what to type, until that is typed', async ({
  scene: { workspace, api, configure },
}) => {
  const { run, value } = workspace
  configure({ removals: { brakePercent: 30, brakeRows: 0 } })
  api.perPage = 25
  const syncOf = async (count: number) => {
    api.list = items(count)
    return run(['sync'])
  }
  await syncOf(100)
  const codes = [(await syncOf(70)).code, (await syncOf(70)).code]
  expect([codes, value('SELECT count(*) FROM orders')]).toEqual([[0, 0], 70])

  const first = await syncOf(40)
  const second = await syncOf(40)
  const status = await run(['status'])
  const accepted = await run(typed(`${SYNC} --accept-removals`))
  const after = await run(['status'])

  expect([first, second, accepted].map(({ code }) => code)).toEqual([0, 5, 0])
  expect(second.logs.at(-1)).toMatchObject({
    level: 'warn',
    event: 'run_finished',
    status: 'succeeded',
    rows_removed: 0,
    error_code: 'REMOVALS_HELD',
    error_message: expect.stringContaining('30 of 70 rows left the list'),
  })
  expect(second.logs.at(-1)?.error_message).toContain(`${SYNC} --accept-removals`)
  expect(status.stdout).toContain("30 of the list's 70 rows left it, and their removal is held back")
  expect(status.stdout).toContain('the only list needs attention')
  expect(status.stdout).toContain(
    `next: look whether these rows really left the list (verify compares it with the API), then: ${SYNC} --accept-removals`,
  )
  expect(accepted.logs.at(-1)).toMatchObject({ rows_removed: 30 })
  expect(value('SELECT count(*) FROM orders')).toBe(40)
  expect(after.stdout).toContain('the only list is up to date')
})

it('a list that moves, and whose total is never right, costs little more than one request a page, and it is said what to set, until that is set', async ({
  scene: { workspace, api, server, configure },
}) => {
  const { run } = workspace
  const list = items(60)
  api.instead = (asked) => {
    const answer = server.asked.length
    if (answer % 10 === 0) list.push({ id: 1000 + answer, state: 'open' })
    return pageOf(list, asked, { total: list.length + (answer % 2) * 3 })
  }
  await run(['sync'])
  const before = server.asked.length

  const second = await run(['sync'])
  const asked = server.asked.length - before
  const status = await run(['status'])
  const told = JSON.parse((await run(['status', '--json'])).stdout) as { jobs: unknown[] }
  configure({ collections: { orders: { total: 'ignore' }, establishments: false } })
  await run(typed(SYNC))
  const after = await run(['status'])

  expect(second.code).toBe(0)
  expect(asked).toBeLessThan(2 * Math.ceil(list.length / 2))
  expect(second.logs.at(-1)).toMatchObject({
    level: 'warn',
    msg: expect.stringMatching(
      /this walk removed nothing: .*the total changed meanwhile; .*set collections\.orders\.total: ignore$/,
    ),
  })
  expect(status.stdout).toContain('the only list was read, but something may be missing')
  expect(status.stdout).toContain('set collections.orders.total: ignore')
  expect(told.jobs).toMatchObject([{ coverage: 'drifted', state: 'uncertain' }])
  expect(after.stdout).toContain('the only list is up to date')
})

it('numbers that an API begins to send as texts shrink no sum, and what is no number is named by status until it ends', async ({
  scene: { workspace, api },
}) => {
  const { run, rows } = workspace
  const syncOf = async (fields: (id: number) => object) => {
    api.list = items(20).map(({ id }) => ({ id, ...fields(id) }))
    await run(['sync'])
  }
  const sums = () => rows('SELECT sum(total) AS total, sum(rate) AS rate FROM orders')
  await syncOf((id) => ({ total: id * 100, rate: id + 0.5 }))
  const before = sums()

  await syncOf((id) => ({ total: `${id * 100}`, rate: `${id}.50` }))

  expect(sums()).toEqual(before)
  expect(workspace.value('SELECT _json FROM orders_raw WHERE id = 3')).toContain('"total":"300"')
  expect((await run(['status'])).stdout).not.toContain('note:')

  await syncOf((id) => ({ total: id === 3 ? 'Secret Value' : `${id * 100}` }))

  const notes = ['orders.total__text has the values of 1 row that did not fit the column beside it']
  const status = await run(['status', '--check'])
  expect(status.code).toBe(0)
  expect(status.stdout.match(/(?<=^note: ).*/gm)).toEqual(notes)
  expect(JSON.parse((await run(['status', '--json'])).stdout)).toMatchObject({ notes })
  expect(status.stdout).not.toContain('Secret Value')

  await syncOf((id) => ({ total: id * 100, rate: null, other: id === 7 ? 1 : null }))
  expect((await run(['status'])).stdout.match(/^note: .*/gm)).toBeNull()
})

it('a page that always fails is named after three runs that stopped at it, with what reads on behind it', async ({
  scene: { workspace, api, configure },
}) => {
  const { run, value } = workspace
  configure({ retry: { attempts: 1 } })
  api.list = items(12)
  api.instead = (asked) => (asked.page === 4 ? { status: 500, body: {} } : pageOf(api.list, asked))
  const stop = async () => {
    await run(['sync'])
    return (await run(['status'])).stdout
  }

  const told = [await stop(), await stop(), await stop()]
  const behind = 'admin-mirror backfill --org acme --collection orders --from-page 5'
  const backfill = await run(typed(behind))

  expect(told.map((text) => text.includes(behind))).toEqual([false, false, true])
  expect(told[2]).toContain('page 4 failed in each of the last 3 runs')
  expect(backfill.code).toBe(0)
  expect(value('SELECT count(*) FROM orders')).toBe(10)
})

it('rows that left a list since its filters were narrowed are told so', async ({
  scene: { workspace, api, configure },
}) => {
  const { run } = workspace
  const removals = { brakePercent: 30, brakeRows: 0 }
  configure({ removals })
  api.perPage = 25
  api.list = items(70)
  await run(['sync'])
  const filters = { state: 'paid' }
  configure({ removals, collections: { orders: { filters }, establishments: false } })
  api.list = items(40)
  await run(['sync'])

  const held = await run(['sync'])
  const status = await run(['status'])

  const why = 'since its filters or its path were changed'
  expect(held.logs.at(-1)?.error_message).toContain(`30 of 70 rows left the list ${why}, and are held back`)
  expect(status.stdout).toContain(`30 of the list's 70 rows left it ${why}, and their removal is held back`)
})
