import { expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { sceneTests } from '../../helpers/scene.ts'

const it = sceneTests()

// What sync and status say of a list that somebody has to look at. How walks are judged: test/sync; each text: test/report.

const SYNC = 'admin-mirror sync --org acme --collection orders'

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
  const accepted = await run(`${SYNC} --accept-removals`.split(' ').slice(1))
  const after = await run(['status'])

  expect([first, second, accepted].map(({ code }) => code)).toEqual([0, 5, 0])
  expect(second.logs.at(-1)).toMatchObject({
    level: 'warn',
    event: 'run_finished',
    status: 'succeeded',
    rows_removed: 0,
    error_code: 'REMOVALS_HELD',
    error_message: expect.stringMatching(
      /30 of 70 rows left the list.*--org acme --collection orders --accept-removals/,
    ),
  })
  expect(status.stdout).toContain(
    "30 of the list's 70 rows are no longer in it, and stay in the mirror until somebody decides",
  )
  expect(status.stdout).toContain(`(it writes nothing); only if they did: ${SYNC} --accept-removals`)
  expect(accepted.logs.at(-1)).toMatchObject({ rows_removed: 30 })
  expect(value('SELECT count(*) FROM orders')).toBe(40)
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

  await syncOf((id) => ({ total: id === 3 ? 'Secret Value' : `${id * 100}` }))
  const { stdout } = await run(['status'])
  expect(stdout.match(/(?<=^note: ).*/gm)).toEqual([
    'orders.total__text has the values of 1 row that did not fit the column beside it',
  ])
  expect(stdout).not.toContain('Secret Value')

  await syncOf((id) => ({ total: id * 100 }))
  expect((await run(['status'])).stdout).not.toContain('note:')
})
