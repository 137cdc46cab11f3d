import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)
const ITEMS = [
  '{"id": 2, "note": "a \\"b\\",\\n c", "price": 1.10, "at": {"zip": "01"}}',
  '{"id":1,\n  "big":12345678901234567890}',
]

let workspace: Workspace

beforeAll(async () => {
  const server = await serve((asked) => {
    const { body } = pageOf([], asked, { total: 2 })
    return { body: JSON.stringify(body).replace('"data":[]', `"data":[${ITEMS.join(',')}]`) }
  })
  workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [ACME, GLOBEX],
    collections: { establishments: false, invoices: {} },
  })
  await workspace.run(['sync', '--collection', 'orders'])
})

const exported = (...args: string[]) => workspace.run(['export', ...args])

describe.concurrent('export', () => {
  it('writes the live rows of all organizations as CSV', async () => {
    const { code, stdout, stderr } = await exported('orders', '--format', 'csv')

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe(
      '_organization_id,_first_seen_at,_changed_at,id,note,price,at__zip,big',
    )
    expect(stdout.match(/^[0-9a-f-]{36},/gm)).toHaveLength(4)
    expect(stdout).toMatch(/,2,"a ""b"",\n c",1\.1,01,\n/)
    expect(stdout).toMatch(/,1,,,,12345678901234567890\n/)
  })

  it('writes the items as they were sent as NDJSON, each on its line', async () => {
    const { code, stdout } = await exported('orders', '--format', 'ndjson', '--org', 'acme')

    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toEqual([ITEMS[0], ITEMS[1]?.replace('\n', ' ')])
  })

  it('writes the rows of the organizations that are named, by name or UUID', async () => {
    const { stdout } = await exported('orders', '--format', 'csv', '--org', GLOBEX.id)

    expect(stdout.match(/^[0-9a-f-]{36}/gm)).toEqual([GLOBEX.id, GLOBEX.id])
  })

  it('writes to a file, in place of what it held, and nothing to standard output', async () => {
    const file = workspace.file('orders.ndjson')
    fs.writeFileSync(file, 'the export of yesterday')

    const { code, stdout } = await exported('orders', '--format', 'ndjson', '--output', 'orders.ndjson')

    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(fs.readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(4)
    expect(fs.readdirSync(workspace.folder).filter((name) => /unfinished/.test(name))).toEqual([])
  })

  it('puts no file in the place of a device', async () => {
    // Moved over /dev/null itself, it would break the whole system.
    fs.symlinkSync('/dev/null', workspace.file('device'))

    const { code } = await exported('orders', '--format', 'csv', '--output', 'device')

    expect(code).toBe(0)
    expect(fs.readlinkSync(workspace.file('device'))).toBe('/dev/null')
    expect(fs.readdirSync(workspace.folder).filter((name) => /unfinished/.test(name))).toEqual([])
  })

  it.each([
    ['of a collection that nobody knows', ['order', '--format', 'csv'], /no collection order/],
    ['of a collection that was not synced yet', ['invoices', '--format', 'csv'], /admin-mirror sync/],
    [
      'of an organization that nobody knows',
      ['orders', '--format', 'csv', '--org', 'nobody'],
      /--org nobody/,
    ],
    [
      'to a folder that is not there',
      ['orders', '--format', 'csv', '--output', 'no/where.csv'],
      /--output .*where\.csv/,
    ],
    ['to a folder', ['orders', '--format', 'csv', '--output', '.'], /--output/],
  ])('%s exits with 2, and says why', async (_, args, reason) => {
    const { code, stdout, stderr } = await exported(...args)

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(reason)
  })
})
