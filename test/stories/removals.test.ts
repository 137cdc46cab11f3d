import { describe, expect, it } from 'vitest'
import { items, pageOf, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'

const ACCEPT = 'admin-mirror sync --org acme --collection orders --accept-removals'

describe('removals that are held back', () => {
  it('are those beyond the configured brake, and are told by sync and status, with what to type, until that is typed', async () => {
    let list = items(100)
    const server = await serve((asked) => pageOf(list, asked, { perPage: 25 }))
    const { run, value } = createWorkspace({
      baseUrl: server.url,
      organizations: [organization('acme', 1)],
      removals: { brakePercent: 30, brakeRows: 0 },
    })
    await run(['sync'])
    list = list.slice(0, 70)
    const codes = [(await run(['sync'])).code, (await run(['sync'])).code]
    expect([codes, value('SELECT count(*) FROM orders')]).toEqual([[0, 0], 70])
    list = list.slice(0, 40)

    const first = await run(['sync'])
    const second = await run(['sync'])
    const status = await run(['status'])
    const typed = await run(ACCEPT.split(' ').slice(1))
    const after = await run(['status'])

    expect([first, second, typed].map(({ code }) => code)).toEqual([0, 5, 0])
    expect(second.logs.at(-1)).toMatchObject({
      level: 'warn',
      event: 'run_finished',
      status: 'succeeded',
      rows_removed: 0,
      error_code: 'REMOVALS_HELD',
      error_message: expect.stringContaining(`30 of 70 rows left the list`),
    })
    expect(second.logs.at(-1)?.error_message).toContain(ACCEPT)
    expect(status.stdout).toContain('30 of these 70 rows left the list and are held back')
    expect(status.stdout).toContain(`the only list needs attention`)
    expect(status.stdout).toContain(`next: check that these rows really left the list, then: ${ACCEPT}`)
    expect(typed.logs.at(-1)).toMatchObject({ rows_removed: 30 })
    expect(value('SELECT count(*) FROM orders')).toBe(40)
    expect(after.stdout).toContain('the only list is up to date')
  })
})
