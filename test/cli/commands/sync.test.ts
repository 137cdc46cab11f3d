import { expect } from 'vitest'
import { items } from '../../helpers/list-server.ts'
import { sceneTests } from '../../helpers/scene.ts'

const it = sceneTests()

// How walks are judged: test/sync/removals.test.ts; the words for it: test/report.

it('removals beyond the configured brake are held back, and told by sync and status, with what to type, until that is typed', async ({
  scene: { workspace, api, configure },
}) => {
  const { run, value } = workspace
  configure({ removals: { brakePercent: 30, brakeRows: 0 } })
  api.perPage = 25
  const codes: [number | null, unknown][] = []
  const syncOf = async (count: number, ...options: string[]) => {
    api.list = items(count)
    const { code, logs } = await run(['sync', ...options])
    codes.push([code, value('SELECT count(*) FROM orders')])
    return logs.at(-1)
  }
  for (const count of [100, 70, 70, 40]) await syncOf(count)

  const held = await syncOf(40)
  const status = await run(['status', '--check'])
  const typed = '--org acme --collection orders --accept-removals'
  const accepted = await syncOf(40, ...typed.split(' '))

  const before = [100, 100, 70, 70].map((rows) => [0, rows])
  expect(codes).toEqual([...before, [5, 70], [0, 40]])
  expect(held).toMatchObject({
    level: 'error',
    event: 'run_finished',
    status: 'succeeded',
    rows_removed: 0,
    error_code: 'REMOVALS_HELD',
    error_message: expect.stringMatching(new RegExp(`30 of 70 rows left the list.*${typed}`)),
  })
  expect([status.code, status.stdout]).toEqual([
    5,
    expect.stringContaining(`only if they did, delete them: admin-mirror sync ${typed}`),
  ])
  expect(accepted).toMatchObject({ rows_removed: 30 })
  expect((await run(['status'])).stdout).toContain('1 of 1 lists are well')
})
