import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

const SYNC = 'admin-mirror sync --org acme --collection orders'

describe('a list that moves, and whose total is never right', () => {
  it('costs little more than one request a page, and says what to set, until that is set', async () => {
    const list = items(60)
    const server = await serve((asked) => {
      const answer = server.asked.length
      if (answer % 10 === 0) list.push({ id: 1000 + answer, state: 'open' })
      return pageOf(list, asked, { total: list.length + (answer % 2) * 3 })
    })
    const settings = { baseUrl: server.url, organizations: [organization('acme', 1)] }
    const { run, configure } = createWorkspace(settings)
    await run(['sync'])
    const before = server.asked.length

    const second = await run(['sync'])
    const asked = server.asked.length - before
    const status = await run(['status'])
    const told = JSON.parse((await run(['status', '--json'])).stdout) as { jobs: unknown[] }
    configure({ ...settings, collections: { orders: { total: 'ignore' }, establishments: false } })
    await run(SYNC.split(' ').slice(1))
    const after = await run(['status'])

    expect(second.code).toBe(0)
    expect(asked).toBeLessThan(2 * Math.ceil(list.length / 2))
    expect(second.logs.at(-1)).toMatchObject({
      level: 'warn',
      msg: expect.stringMatching(
        /this walk removed nothing: .*the total went up and down, \d+ times in \d+ answers, .*set collections\.orders\.total: ignore$/,
      ),
    })
    expect(status.stdout).toContain('the only list was read, but something may be missing')
    expect(status.stdout).toMatch(
      /next: the total of orders cannot be relied on.*set collections\.orders\.total: ignore/,
    )
    expect(status.stdout).toContain(`then: ${SYNC}`)
    expect(told.jobs).toMatchObject([{ coverage: 'drifted', expected_missed: null, total_is_wrong: true }])
    expect(after.stdout).toContain('the only list is up to date')
  })
})
