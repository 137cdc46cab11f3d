import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import { mustRun } from '../helpers/system.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, variable, type Workspace } from './workspace.ts'

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
      '_organization_id,_organization,_first_seen_at,_changed_at,id,note,price,at__zip,big',
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

    expect(csv).toMatchObject({
      code: 0,
      stdout: '_organization_id,_organization,_first_seen_at,_changed_at,id\n',
    })
    expect(ndjson).toMatchObject({ code: 0, stdout: '' })
  })

  it.each(['organizations', 'sync_status', 'sync_runs', 'sync_walks', 'sync_columns'])(
    'writes %s as Parquet, each value of its type',
    async (name) => {
      const parquet = await exported(name, '--format', 'parquet', '--output', `${name}.parquet`)

      expect(parquet).toMatchObject({ code: 0, stderr: '' })
      expect(
        fs
          .readFileSync(workspace.file(`${name}.parquet`))
          .subarray(-4)
          .toString(),
      ).toBe('PAR1')
    },
  )

  it('writes the rows of one organization of a table that every mirror has, and refuses what it has not', async () => {
    const organizations = await exported('organizations', '--format', 'ndjson', '--org', 'acme')
    const runs = await exported('sync_runs', '--format', 'ndjson', '--org', 'globex')
    const columns = await exported('sync_columns', '--format', 'csv', '--org', 'acme')
    const since = await exported('sync_runs', '--format', 'csv', '--since', '2026-01-01')

    expect(JSON.parse(organizations.stdout)).toEqual({
      id: ACME.id,
      name: 'acme',
      configured: 1,
      held_since: null,
      held_reason: null,
    })
    expect(JSON.parse(runs.stdout)).toMatchObject({ organization_id: GLOBEX.id, status: 'succeeded' })
    expect([columns, since].map(({ code }) => code)).toEqual([2, 2])
    expect(columns.stderr).toMatch(/--org: the rows of sync_columns belong to no organization/)
    expect(since.stderr).toMatch(/--since: sync_runs has no time of change/)
  })

  it('exits with 2 for a collection that was configured after the last sync', async () => {
    const config = JSON.parse(fs.readFileSync(workspace.file('admin-mirror.yaml'), 'utf8'))
    config.collections.payments = {}
    fs.writeFileSync(workspace.file('more.yaml'), JSON.stringify(config))

    const { code, stderr } = await exported('payments', '--format', 'csv', '--config', 'more.yaml')

    expect(code).toBe(2)
    expect(stderr).toMatch(/nothing of payments was synced yet; "admin-mirror sync --config more\.yaml"/)
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
    // In a folder of its own: other tests write beside it.
    fs.mkdirSync(workspace.file('apart'))
    fs.symlinkSync('/dev/null', workspace.file('apart/device'))

    const { code } = await exported('orders', '--format', 'csv', '--output', 'apart/device')

    expect(code).toBe(0)
    expect(fs.readlinkSync(workspace.file('apart/device'))).toBe('/dev/null')
    expect(fs.readdirSync(workspace.file('apart'))).toEqual(['device'])
  })

  it('writes to standard output for --output -', async () => {
    const args = ['orders', '--format', 'ndjson', '--org', 'acme']
    const { code, stdout } = await exported(...args, '--output', '-')

    expect({ code, stdout }).toEqual({ code: 0, stdout: (await exported(...args)).stdout })
    expect(stdout).toContain('12345678901234567890')
    expect(fs.existsSync(workspace.file('-'))).toBe(false)
  })

  it('adds to the file of standard output, for --output /dev/stdout, too', async () => {
    const report = workspace.file('report.csv')
    fs.writeFileSync(report, 'of yesterday\n')

    const { code } = await workspace.run(
      ['export', 'orders', '--format', 'ndjson', '--org', 'acme', '--output', '/dev/stdout'],
      { through: ['sh', '-c', `exec "$@" >> ${report}`, 'sh'] },
    )

    expect(code).toBe(0)
    expect(fs.readFileSync(report, 'utf8')).toBe(
      `of yesterday\n${(await exported('orders', '--format', 'ndjson', '--org', 'acme')).stdout}`,
    )
  })

  it('writes into a pipe of the shell, which has no name of its own', async () => {
    const { code, stdout, stderr } = await workspace.run(
      ['export', 'orders', '--format', 'ndjson', '--org', 'acme', '--output', '/dev/fd/3'],
      // The pipe's other end is a cat that writes what comes to standard output.
      { through: ['sh', '-c', '"$@" 3>&1 >&2 | cat', 'sh'] },
    )

    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^warning: the field big .*\n$/) as string,
    })
    expect(stdout).toBe((await exported('orders', '--format', 'ndjson', '--org', 'acme')).stdout)
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

describe('export of an organization that left the configuration', () => {
  it('writes its rows, which stay in the mirror', async () => {
    const server = await serve((asked) => pageOf([{ id: 7 }], asked))
    const left = createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
    await left.run(['sync'])
    left.configure({ baseUrl: server.url, organizations: [ACME] })

    const [byName, byId, both, nobody] = [
      await left.run(['export', 'orders', '--format', 'ndjson', '--org', 'globex']),
      await left.run(['export', 'orders', '--format', 'csv', '--org', GLOBEX.id]),
      await left.run(['export', 'orders', '--format', 'ndjson', '--org', 'acme', '--org', 'globex']),
      await left.run(['export', 'orders', '--format', 'ndjson', '--org', 'nobody']),
    ]

    expect([byName, byId, both, nobody].map(({ code }) => code)).toEqual([0, 0, 0, 2])
    expect(byName.stdout).toBe('{"id":7}\n')
    expect(byId.stdout).toContain(`\n${GLOBEX.id},globex,`)
    expect(both.stdout).toBe('{"id":7}\n{"id":7}\n')
    expect(nobody.stderr).toMatch(/--org nobody/)
  })

  it('exits with 2 for an unknown name where there is no mirror yet', async () => {
    const none = createWorkspace({ baseUrl: 'http://127.0.0.1:9', organizations: [ACME] })

    const { code, stderr } = await none.run(['export', 'orders', '--format', 'csv', '--org', 'nobody'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/--org nobody/)
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
    { what: 'a token file', make: () => 'globex.token' },
    { what: 'a token file whose path has a variable', make: () => 'hooli.token' },
    { what: 'a symbolic link to a token file', make: link('globex.token', 'orders.csv') },
    { what: 'a hard link to a token file', make: hardLink('globex.token', 'orders.csv') },
    { what: 'the published copy, before there is one', make: () => 'published.db' },
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

    const { code, stdout, stderr } = await made.run(
      ['export', 'orders', '--format', 'csv', '--output', output],
      { env: { FOLDER: made.folder } },
    )

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/--output .*a file of the mirror/)
    expect(contents(made)).toEqual(before)
  })
})

describe.concurrent('export to a file', () => {
  const TO_FILE = ['export', 'orders', '--format', 'ndjson', '--output', 'orders.ndjson']

  it.each([0o600, 0o640, 0o664, 0o444])('keeps the mode of the one that was there: %o', async (mode) => {
    const made = await createSynced()
    fs.writeFileSync(made.file('orders.ndjson'), 'yesterday')
    fs.chmodSync(made.file('orders.ndjson'), mode)

    expect((await made.run(TO_FILE)).code).toBe(0)
    expect(modeOf(made.file('orders.ndjson'))).toBe(mode)
    expect(linesOf(made.file('orders.ndjson'))).toHaveLength(2)
  })

  it.each([0o022, 0o077, 0o007])('that was not there has the mode that umask %o says', async (mask) => {
    const made = await createSynced()
    const through = ['sh', '-c', `umask ${mask.toString(8)}; exec "$@"`, 'sh']

    expect((await made.run(TO_FILE, { through })).code).toBe(0)
    expect(modeOf(made.file('orders.ndjson'))).toBe(0o666 & ~mask)
  })

  it('follows a link that leads to a file, and one that leads to none yet', async () => {
    const made = await createSynced()
    for (const name of ['there', 'not-there']) fs.symlinkSync(`${name}.ndjson`, made.file(`${name}-link`))
    fs.writeFileSync(made.file('there.ndjson'), 'yesterday')

    for (const name of ['there', 'not-there']) {
      const { code } = await made.run(['export', 'orders', '--format', 'ndjson', '--output', `${name}-link`])

      expect(code).toBe(0)
      expect(fs.readlinkSync(made.file(`${name}-link`))).toBe(`${name}.ndjson`)
      expect(linesOf(made.file(`${name}.ndjson`))).toHaveLength(2)
    }
  })

  it('clears away what a killed export has left there', async () => {
    const made = await createSynced()
    const [dead, perhapsAlive] = ['4711-0123456789ab', '4712-0123456789ab']
    fs.writeFileSync(made.file(`mirror.db-owners/${dead}`), '')
    for (const lock of [dead, perhapsAlive])
      fs.writeFileSync(made.file(`.orders.ndjson.${lock}.unfinished`), 'half')

    expect((await made.run(TO_FILE)).code).toBe(0)

    expect(fs.readdirSync(made.folder).filter((name) => name.includes('unfinished'))).toEqual([
      `.orders.ndjson.${perhapsAlive}.unfinished`,
    ])
  })

  it('leaves every other file alone, whatever its name', async () => {
    const made = await createSynced()
    fs.writeFileSync(made.file('orders.ndjson.unfinished'), 'somebody else wrote this')
    fs.symlinkSync('orders.ndjson.unfinished', made.file('orders.ndjson.tmp'))

    expect((await made.run(TO_FILE)).code).toBe(0)
    expect(fs.readFileSync(made.file('orders.ndjson.unfinished'), 'utf8')).toBe('somebody else wrote this')
  })

  it('writes into a pipe as it is', async () => {
    const made = await createSynced()
    mustRun('mkfifo', made.file('orders.ndjson'))
    const running = made.start(TO_FILE)

    expect(linesOf(made.file('orders.ndjson'))).toHaveLength(2)
    expect((await running.ended).code).toBe(0)
    expect(fs.statSync(made.file('orders.ndjson')).isFIFO()).toBe(true)
  })

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('that is stopped by %s leaves what was there, and nothing else', async (signal, code) => {
    const made = await createSynced()
    fs.writeFileSync(made.file('orders.ndjson'), 'yesterday')
    // Every reader makes -wal and -shm.
    const names = () => fs.readdirSync(made.folder).filter((name) => !/-(?:wal|shm)$/.test(name))
    const before = names()
    let meanwhile: string[] = []
    const end = watchEdges({
      after({ what, file }) {
        if (!what.startsWith('fs.open ') || !file.startsWith(made.folder)) return
        meanwhile = names()
        running.kill(signal)
      },
    })

    const running = made.startHere(TO_FILE)

    expect(await running.ended).toMatchObject({ code, signal: null, stdout: '' })
    end()
    expect(meanwhile).toHaveLength(before.length + 1)
    expect(fs.readFileSync(made.file('orders.ndjson'), 'utf8')).toBe('yesterday')
    expect(names()).toEqual(before)
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

function modeOf(file: string): number {
  return fs.statSync(file).mode & 0o777
}

function withFile(name: string, number: number, tokenFile: string) {
  const { token: _, ...settings } = organization(name, number, { tokenFile })
  return settings
}

/** A mirror of so many orders. */
async function createSynced(count = 2): Promise<Workspace> {
  const server = await serve((asked) => pageOf(items(count), asked, { perPage: count }))
  const organizations = [
    ACME,
    withFile('globex', 2, 'globex.token'),
    withFile('hooli', 3, `${variable('FOLDER')}/hooli.token`),
  ]
  const settings = { baseUrl: server.url, organizations }
  const made = createWorkspace(settings)
  for (const name of ['globex', 'hooli']) fs.writeFileSync(made.file(`${name}.token`), `secret of ${name}`)
  await made.run(['sync', '--org', 'acme'], { env: { FOLDER: made.folder } })
  // Only now, since making that copy takes longer than most of these tests.
  made.configure({ ...settings, publish: 'published.db' })
  return made
}

function linesOf(file: string): string[] {
  return fs.readFileSync(file, 'utf8').trimEnd().split('\n')
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
