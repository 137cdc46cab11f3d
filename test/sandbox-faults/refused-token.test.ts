import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createDoor, type Fault } from '../helpers/list-server.ts'
import { createWorkspace, organization } from '../helpers/workspace.ts'
import { status } from './answers.ts'
import { type FaultServer, serveFaults } from './fault-server.ts'

// A 401 at inconvenient moments. What it means for organizations and commands is told in test/stories/refused-token.test.ts.

const ACME = organization('acme', 1)
const HELD = 'SELECT name FROM organizations WHERE held_since IS NOT NULL'

describe.concurrent('a 401', () => {
  it('in one process stops the one that waits for its rate limit in another', async () => {
    const door = createDoor()
    const refused: Fault = (response) => {
      void door.opened.then(() => response.writeHead(401).end())
    }
    const server: FaultServer = await serveFaults(
      [
        { collection: 'orders', page: 2, fault: refused },
        { collection: 'establishments', page: 2, fault: status(429, { 'retry-after': '2' }) },
      ],
      { organizations: [ACME] },
    )
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: [ACME],
      collections: { orders: {}, establishments: {} },
    })
    const one = workspace.start(['sync', '--collection', 'orders', '--log-level', 'trace'])
    await server.arrival(({ collection, page }) => collection === 'orders' && page === 2)
    const other = workspace.start(['sync', '--collection', 'establishments', '--log-level', 'trace'])
    await other.log(({ msg }) => msg === 'waiting')

    door.open()
    const codes = [(await one.ended).code, (await other.ended).code]

    expect(codes).toEqual([3, 3])
    expect(server.asked.map(({ collection, page }) => `${collection} ${page}`)).toEqual([
      'orders 1',
      'orders 2',
      'establishments 1',
      'establishments 2',
    ])
    expect(
      workspace.rows('SELECT collection, error_code, requests FROM sync_runs ORDER BY collection'),
    ).toEqual([
      { collection: 'establishments', error_code: 'UNAUTHORIZED', requests: 2 },
      { collection: 'orders', error_code: 'UNAUTHORIZED', requests: 2 },
    ])

    server.heal()
    await workspace.run(['resume'])
    const again = await workspace.run(['sync'])

    expect(again.code).toBe(0)
    expect(
      workspace.rows("SELECT * FROM sync_walks WHERE status <> 'complete' OR coverage <> 'steady'"),
    ).toEqual([])
  })

  it('under start holds until the token file has another token, which the next run reads', async () => {
    const { token: _, ...acme } = organization('acme', 1, { tokenFile: 'acme.token' })
    const [before, after] = ['1|Secret-before-Kf82hLq0Zx', '2|Secret-after-Wm51sTe7Ub']
    const server = await serveFaults(
      [
        {
          fault: (response, text, { token }) =>
            token === before ? response.writeHead(401).end() : response.end(text),
        },
      ],
      { organizations: [acme] },
    )
    const workspace = createWorkspace({ baseUrl: server.url, organizations: [acme], schedule: '* * * * * *' })
    fs.writeFileSync(workspace.file('acme.token'), workspace.secret(before))
    const start = workspace.startHere(['start', '--log-level', 'trace'])
    // Held, and not asked for again when its time comes, twice.
    await start.logs(({ event }) => event === 'run_not_begun', 2)
    expect(workspace.rows(HELD)).toEqual([{ name: 'acme' }])
    expect(server.asked).toHaveLength(1)

    fs.writeFileSync(workspace.file('acme.token'), `${workspace.secret(after)}\n`)
    await start.log((line) => line.event === 'run_finished' && line.status === 'succeeded')
    start.kill('SIGTERM')

    expect((await start.ended).code).toBe(0)
    expect(workspace.rows(HELD)).toEqual([])
    expect(server.asked.filter(({ token }) => token === before)).toHaveLength(1)
  })
})
