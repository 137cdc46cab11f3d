import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { items, pageOf, serve } from './list-server.ts'
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

  it('writes nothing but the names of the columns of a collection that has no rows yet', async () => {
    const csv = await exported('invoices', '--format', 'csv')
    const ndjson = await exported('invoices', '--format', 'ndjson')

    expect(csv).toMatchObject({ code: 0, stdout: '_organization_id,_first_seen_at,_changed_at,id\n' })
    expect(ndjson).toMatchObject({ code: 0, stdout: '' })
  })

  it('exits with 2 for a collection that was configured after the last sync', async () => {
    const config = JSON.parse(fs.readFileSync(workspace.file('admin-mirror.yaml'), 'utf8'))
    config.collections.payments = {}
    fs.writeFileSync(workspace.file('more.yaml'), JSON.stringify(config))

    const { code, stderr } = await exported('payments', '--format', 'csv', '--config', 'more.yaml')

    expect(code).toBe(2)
    expect(stderr).toMatch(/nothing of payments was synced yet; "admin-mirror sync"/)
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

interface Protected {
  what: string
  make: (workspace: Workspace) => string
}

const link = (target: string, name: string) => (made: Workspace) => {
  fs.symlinkSync(made.file(target), made.file(name))
  return name
}

const hardLink = (target: string, name: string) => (made: Workspace) => {
  fs.linkSync(made.file(target), made.file(name))
  return name
}

describe.concurrent('export to a file that the mirror lives on', () => {
  it.each<Protected>([
    { what: 'the mirror', make: () => 'mirror.db' },
    { what: 'its write-ahead log', make: () => 'mirror.db-wal' },
    { what: 'its shared memory', make: () => 'mirror.db-shm' },
    { what: 'a file among its owners', make: () => 'mirror.db-owners/somebody' },
    { what: 'the configuration', make: () => 'admin-mirror.yaml' },
    { what: 'a symbolic link to the mirror', make: link('mirror.db', 'orders.csv') },
    { what: 'a symbolic link to its log, which is not there', make: link('mirror.db-wal', 'orders.csv') },
    { what: 'a hard link to the mirror', make: hardLink('mirror.db', 'orders.csv') },
    { what: 'a hard link to the configuration', make: hardLink('admin-mirror.yaml', 'orders.csv') },
    {
      what: 'the mirror by way of a linked folder',
      make: (made) => {
        fs.symlinkSync(made.folder, made.file('linked'))
        return 'linked/mirror.db'
      },
    },
  ])('exits with 2, and touches nothing: $what', async ({ make }) => {
    const made = await createSynced()
    const output = make(made)
    const before = contents(made)

    const { code, stdout, stderr } = await made.run([
      'export',
      'orders',
      '--format',
      'csv',
      '--output',
      output,
    ])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/--output .*a file of the mirror/)
    expect(contents(made)).toEqual(before)
  })
})

describe.concurrent('export of a damaged mirror', () => {
  it.each(['csv', 'ndjson'])('as %s exits with 4, and leaves no half of an export', async (format) => {
    const made = await createSynced(2000)
    overwriteLastPages(made.mirror)

    const { code, stderr } = await made.run(['export', 'orders', '--format', format, '--output', 'orders'])

    expect(code).toBe(4)
    expect(stderr).toMatch(/mirror\.db is damaged/)
    expect(fs.readdirSync(made.folder).filter((name) => name.startsWith('orders'))).toEqual([])
  })
})

/** A mirror of so many orders. */
async function createSynced(count = 2): Promise<Workspace> {
  const server = await serve((asked) => pageOf(items(count), asked, { perPage: count }))
  const made = createWorkspace({ baseUrl: server.url, organizations: [ACME] })
  await made.run(['sync'])
  return made
}

/** All files of the folder, without -wal and -shm, which every reader makes. */
function contents({ folder, file }: Workspace): Record<string, string> {
  const names = fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !/-(?:wal|shm)$/.test(entry.name))
    .map(({ name }) => name)
  return Object.fromEntries(names.map((name) => [name, fs.readFileSync(file(name), 'latin1')]))
}

/** Leaves the first pages, with the schema, as they are. */
function overwriteLastPages(file: string): void {
  const bytes = fs.readFileSync(file)
  bytes.fill(0x5a, Math.floor(bytes.length / 2))
  fs.writeFileSync(file, bytes)
}
