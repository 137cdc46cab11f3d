import { describe, expect, it } from 'vitest'
import { pageOf, serve } from '../cli/list-server.ts'
import { createWorkspace, organization } from '../cli/workspace.ts'
import { repeat } from './connection.ts'

// A proxy that sends each answer twice: what one list was answered must not become the rows of another.

const ORGANIZATIONS = Array.from({ length: 4 }, (_, index) => organization(`org-${index + 1}`, index + 1))

describe('a server that repeats its answers on kept connections', () => {
  it('gives no list the rows of another one', async () => {
    const server = await serve((asked) => {
      const own = Array.from({ length: 12 }, (_, id) => ({
        id,
        of: `${asked.organization} ${asked.collection}`,
      }))
      return { ...pageOf(own, asked), fault: repeat }
    })
    const workspace = createWorkspace({
      baseUrl: server.url,
      organizations: ORGANIZATIONS,
      collections: { orders: {}, establishments: {} },
      concurrency: 1,
    })

    for (let run = 0; run < 3; run++) await workspace.run(['sync', '--log-level', 'trace'])

    for (const collection of ['orders', 'establishments'])
      expect(
        workspace.rows(`SELECT * FROM ${collection} WHERE "of" <> _organization_id || ' ${collection}'`),
      ).toEqual([])
    expect(workspace.value('SELECT count(*) FROM orders')).toBeGreaterThan(0)
    // What did not end well says that the answer was to another page, or that the network failed.
    expect(
      workspace.rows(`
        SELECT DISTINCT error_code
        FROM sync_runs
        WHERE status <> 'succeeded' AND error_code NOT IN ('BAD_RESPONSE', 'NETWORK')
      `),
    ).toEqual([])
  })
})
