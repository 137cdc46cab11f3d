import fs from 'node:fs'
import { beforeAll, describe, expect } from 'vitest'
import { duckdb as inDuckdb } from '../../helpers/duckdb.ts'
import { watchEdges } from '../../helpers/edges.ts'
import { runInProcess } from '../../helpers/in-process.ts'
import { ACME, createScene, GLOBEX, sceneTests } from '../../helpers/scene.ts'
import { mustRun } from '../../helpers/system.ts'
import { variable, type Workspace } from '../../helpers/workspace.ts'

const it = sceneTests()

// What export writes, and where. How a file is replaced: output/output-file.test.ts.

const ITEMS = [
  '{"id":9223372036854775807,"note":"","price":1.10,"huge":12345678901234567890,"total":"19.90","ratio":0.1,"at":"2026-01-02T03:04:05+02:00","items":[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]}',
  '{"id": -1,\n"note":"Zo\\u00eb, \\"q\\"\\n","price":2,"huge":1e400,"total":"0.00","ratio":null,"at":null,"items":[]}',
]
const ON_LINES = ITEMS.map((item) => item.replace('\n', ' '))
const CHANGED = '2026-11-20T08:30:00.000Z'

let workspace: Workspace

beforeAll(async () => {
  const settings = {
    organizations: [ACME, GLOBEX],
    collections: { establishments: false, lines: { key: ['id', 'total'] }, invoices: {} },
  }
  const meta = { current_page: 1, last_page: 1, total: 2 }
  const body = `{"data":[${ITEMS.join(',')}],"links":{"next":null},"meta":${JSON.stringify(meta)}}`
  ;({ workspace } = await createScene({ settings, instead: () => ({ body }) }))
  await workspace.run(['sync', '--collection', 'orders'])
  await workspace.run(['sync', '--collection', 'lines', '--org', 'acme'])
  workspace.change(`
    UPDATE orders SET _changed_at = '2026-11-19T00:00:00.000Z';
    UPDATE orders SET _changed_at = '${CHANGED}' WHERE id > 0 AND _organization_id = '${ACME.id}';
    UPDATE orders_raw SET _changed_at = (SELECT _changed_at FROM orders AS o WHERE o._organization_id = orders_raw._organization_id AND o.id = orders_raw.id);
    INSERT INTO orders_history (_organization_id, id, _json, _valid_from, _valid_to, _reason) SELECT _organization_id, id, _json, '2026-11-01T00:00:00.000Z', '${CHANGED}', 'changed' FROM orders_raw WHERE id > 0;
  `)
})

const exported = (...args: string[]) => workspace.run(['export', ...args])
const duckdb = (sql: string, timeZone?: string) => inDuckdb(workspace.file, sql, timeZone)
const linesOf = (text: string) => text.split('\n').slice(0, -1)
/** The lines of these rows as NDJSON. */
const ndjson = async (...args: string[]) => linesOf((await exported(...args, '--format', 'ndjson')).stdout)
const OF_ACME = ['orders', '--format', 'ndjson', '--org', 'acme']

describe('export as CSV', () => {
  it('writes the live rows of all organizations, or of those that are named, and tells NULL from an empty text', async () => {
    const { code, stdout, stderr } = await exported('orders', '--format', 'csv')

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')[0]).toBe(
      '_organization_id,_organization,_first_seen_at,_changed_at,id,note,price,huge,total,ratio,at,items',
    )
    expect(stdout.match(/^[0-9a-f-]{36},/gm)).toHaveLength(4)
    expect(stdout).toMatch(/,9223372036854775807,"",1\.1,12345678901234567890,19\.90,0\.1,/)
    expect(stdout).toMatch(/,-1,"Zoë, ""q""\n",2,1e400,0\.00,,,\[\]\n/)
    const one = await exported('orders', '--format', 'csv', '--org', GLOBEX.id)
    expect(one.stdout.match(/^[0-9a-f-]{36}/gm)).toEqual([GLOBEX.id, GLOBEX.id])
  })

  it('begins with the mark of UTF-8 for spreadsheets, and has the names of the columns where there are no rows', async () => {
    expect((await exported('invoices', '--format', 'csv', '--bom')).stdout).toBe(
      '\ufeff_organization_id,_organization,_first_seen_at,_changed_at,id\n',
    )
  })

  it('writes the elements of an array with the name of the organization', async () => {
    expect(linesOf((await exported('orders__items', '--format', 'csv', '--org', 'acme')).stdout)).toEqual([
      '_organization_id,_organization,_parent_id,_index,sku,n',
      `${ACME.id},acme,9223372036854775807,0,a,9007199254740993`,
      `${ACME.id},acme,9223372036854775807,1,"",`,
    ])
  })
})

const warned = async (...args: string[]) => (await exported(...args, '--format', 'ndjson')).stderr

describe('export as NDJSON', () => {
  it('writes the items as they were sent, each on its line, and elements as they stand', async () => {
    expect(await ndjson('orders', '--org', 'acme')).toEqual(ON_LINES)
    expect((await ndjson('orders__items', '--org', 'globex'))[0]).toBe(
      `{"_organization_id":"${GLOBEX.id}","_parent_id":9223372036854775807,"_index":0,"sku":"a","n":9007199254740993}`,
    )
  })

  it('with --envelope says whose an item is, and leaves it as it was sent', async () => {
    const [first = ''] = await ndjson('orders', '--envelope', '--org', 'acme')

    expect(first.endsWith(`,"item":${ITEMS[0]}}`)).toBe(true)
    expect(first).toMatch(
      `{"organization_id":"${ACME.id}","organization":"acme","key":9223372036854775807,"first_seen_at":"`,
    )
    expect(JSON.parse(first)).toMatchObject({ changed_at: CHANGED })
    expect((await ndjson('lines', '--envelope'))[0]).toContain('"key":[9223372036854775807,"19.90"],')
  })

  it('warns once of the numbers that most readers of JSON round, and of no others', async () => {
    for (const more of [[], ['--envelope']])
      expect(await warned('orders', ...more)).toMatch(
        /^warning: there are whole numbers beyond 2\^53; .*, or --format csv\n$/,
      )
    expect(await warned('orders__items')).toMatch(/^warning: there are whole numbers .*\n$/)
    expect(await warned('--quiet', 'orders')).toBe('')
    expect(await warned('sync_runs')).toBe('')
  })
})

describe('export of what belongs to a collection, or to the mirror,', () => {
  it('writes every view and table in each format', async () => {
    const ofMirror = ['organizations', 'sync_status', 'sync_runs', 'sync_walks', 'sync_columns']
    for (const name of ['orders_raw', 'orders_history', 'orders_changes', ...ofMirror]) {
      for (const format of ['csv', 'ndjson', 'parquet']) {
        const { code, stdout } = await exported(name, '--format', format)
        expect([name, format, code, stdout === '']).toEqual([name, format, 0, false])
      }
    }
  })

  it('writes the rows of one organization, and refuses options that mean nothing there', async () => {
    const [organization = ''] = await ndjson('organizations', '--org', 'acme')
    const [run = ''] = await ndjson('sync_runs', '--org', 'globex')

    expect(JSON.parse(organization)).toEqual({
      id: ACME.id,
      name: 'acme',
      configured: 1,
      held_since: null,
      held_reason: null,
    })
    expect(JSON.parse(run)).toMatchObject({ organization_id: GLOBEX.id, status: 'succeeded' })
  })
})

describe('export --since', () => {
  it.for([
    ['orders', 1],
    ['orders_raw', 1],
    ['orders__items', 2],
    ['orders_history', 2],
  ] as const)('writes what has changed since: %s', async ([name, rows]) => {
    const since = async (time: string) => (await ndjson(name, '--since', time)).length

    expect(await since(CHANGED)).toBe(rows)
    expect(await since('2026-11-20T09:30:00+01:00')).toBe(rows)
    expect(await since('2026-11-20T08:30:00.001Z')).toBe(0)
  })

  it('takes a day as its beginning, in UTC, and compares the times of events', async () => {
    expect(await ndjson('orders', '--since', '2026-11-20')).toEqual([ITEMS[0]])
    expect((await ndjson('orders_changes', '--since', '2026-11-01')).length).toBeGreaterThan(2)
    expect(await ndjson('orders_changes', '--since', '2099-01-01')).toEqual([])
  })
})

describe('export as Parquet', () => {
  it('is read by DuckDB with types, every number exact', async () => {
    await exported('orders', '--format', 'parquet', '--output', 'orders.parquet')

    const types = await duckdb("SELECT column_name, column_type FROM (DESCRIBE FROM 'orders.parquet')")
    expect(Object.fromEntries(types)).toEqual({
      _organization_id: 'VARCHAR',
      _organization: 'VARCHAR',
      _first_seen_at: 'TIMESTAMP WITH TIME ZONE',
      _changed_at: 'TIMESTAMP WITH TIME ZONE',
      id: 'BIGINT',
      note: 'VARCHAR',
      price: 'DOUBLE',
      huge: 'VARCHAR',
      total: 'VARCHAR',
      ratio: 'DOUBLE',
      at: 'VARCHAR',
      items: 'VARCHAR',
    })
    const rows = await duckdb(
      `SELECT id, note, price, huge, total, ratio, "at", items, _changed_at FROM 'orders.parquet' WHERE _organization = 'acme' ORDER BY id DESC`,
    )
    expect(rows).toEqual([
      [
        9223372036854775807n,
        '',
        1.1,
        '12345678901234567890',
        '19.90',
        0.1,
        '2026-01-02T03:04:05+02:00',
        '[{"sku":"a","n":9007199254740993},{"sku":"","n":null}]',
        '2026-11-20 08:30:00+00',
      ],
      [-1n, 'Zoë, "q"\n', 2, '1e400', '0.00', null, null, '[]', '2026-11-19 00:00:00+00'],
    ])
    // An instant, whatever the time zone of the one who asks.
    const berlin = "WHERE _changed_at = '2026-11-20 09:30:00+01'::TIMESTAMPTZ"
    expect(await duckdb(`SELECT count(*) > 0 FROM 'orders.parquet' ${berlin}`, 'Europe/Berlin')).toEqual([
      [true],
    ])
    expect(await duckdb("SELECT DISTINCT compression FROM parquet_metadata('orders.parquet')")).toEqual([
      ['ZSTD'],
    ])
  })

  it('holds views, and tables without rows', async () => {
    await exported('orders__items', '--format', 'parquet', '--output', 'items.parquet')
    await exported('lines_history', '--format', 'parquet', '--output', 'empty.parquet')

    const elements = "SELECT sku, n FROM 'items.parquet' WHERE _organization = 'acme' ORDER BY _index"
    expect(await duckdb(elements)).toEqual([
      ['a', 9007199254740993n],
      ['', null],
    ])
    expect(await duckdb("SELECT count(*) FROM 'empty.parquet'")).toEqual([[0n]])
  })

  it('has groups of rows, and all rows of them', async () => {
    const { workspace: large } = await createScene()
    fs.copyFileSync(workspace.mirror, large.mirror)
    large.change(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
      INSERT INTO orders_history (_organization_id, id, _json, _valid_from, _valid_to, _reason)
      SELECT '${ACME.id}', i, '{}', '${CHANGED}', '${CHANGED}', 'changed' FROM n
    `)
    const args = ['export', 'orders_history', '--format', 'parquet', '--database', 'mirror.db']
    await large.run([...args, '--output', workspace.file('history.parquet')])

    const counts = "SELECT count(*), count(DISTINCT id), sum(id) FROM 'history.parquet' WHERE id <= 45000"
    expect(await duckdb(counts)).toEqual([[45_000n, 45_000n, 1_012_522_500n]])
    expect(await duckdb("SELECT num_row_groups > 1 FROM parquet_file_metadata('history.parquet')")).toEqual([
      [true],
    ])
  })
})

describe('export exits with 2, and says why,', () => {
  it.for<[string, string, RegExp]>([
    ['of a collection that nobody knows', 'order --format csv', /no collection order/],
    ['of an organization that nobody knows', 'orders --format csv --org nobody', /--org nobody/],
    ['into a folder that is not there', 'orders --format csv --output no/where.csv', /--output .*where\.csv/],
    ['onto a folder', 'orders --format csv --output .', /--output/],
    [
      'of the columns of an organization',
      'sync_columns --format csv --org acme',
      /--org: the rows of sync_columns belong to no/,
    ],
    [
      'of runs since a time',
      'sync_runs --format csv --since 2026-01-01',
      /--since: sync_runs has no time of change/,
    ],
    ['with --envelope as csv', 'orders --format csv --envelope', /--envelope/],
    ['with --envelope of a view', 'orders__items --format ndjson --envelope', /--envelope/],
    ['with --bom as ndjson', 'orders --format ndjson --bom', /--bom/],
    ...['sync_tokens', 'orders_', 'orders__nothing', 'sqlite_schema'].map(
      (name): [string, string, RegExp] => [
        `of ${name}`,
        `${name} --format csv`,
        /there are: invoices, .*orders, orders__items, orders_changes, orders_history/,
      ],
    ),
    ...['yesterday', '2026-02-30', '2026-13-01', '1732000000', ''].map((time): [string, string, RegExp] => [
      `since (${time})`,
      `orders --format csv --since=${time}`,
      /--since .*2026-11-20/,
    ]),
  ])('%s', async ([, line, reason]) => {
    const { code, stdout, stderr } = await exported(...line.split(' '))

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(reason)
  })
})

describe('export of an organization that left the configuration', () => {
  it.override({ options: { list: [{ id: 7 }], settings: { organizations: [ACME, GLOBEX] } } })

  it('writes its rows, which stay in the mirror', async ({ synced }) => {
    const { run } = synced.workspace
    synced.configure({ organizations: [ACME] })
    const args = ['export', 'orders', '--format', 'ndjson', '--org']

    expect(await run([...args, 'globex'])).toMatchObject({ code: 0, stdout: '{"id":7}\n' })
    expect(await run([...args, GLOBEX.id, '--org', 'acme'])).toMatchObject({
      code: 0,
      stdout: '{"id":7}\n{"id":7}\n',
    })
    expect(await run([...args, 'nobody'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--org nobody/),
    })
  })
})

const contentOf = (name: string) => fs.readFileSync(workspace.file(name), 'utf8')

/** A folder of its own, since other tests write beside it. */
function makeFolder(name: string, ...links: [name: string, to: string][]): string {
  fs.mkdirSync(workspace.file(name))
  for (const [link, to] of links) fs.symlinkSync(to, workspace.file(`${name}/${link}`))
  return name
}

describe('export --output', () => {
  const TO_FILE = [...OF_ACME, '--output']
  const WHOLE = `${ON_LINES.join('\n')}\n`

  it('writes in place of what a file held, or to what a link leads to, and nothing to standard output', async () => {
    makeFolder('files', ['there', 'old'], ['not-there', 'new'], ['device', '/dev/null'])
    fs.writeFileSync(workspace.file('files/old'), 'the export of yesterday')

    for (const name of ['there', 'not-there', 'device'])
      expect(await exported(...TO_FILE, `files/${name}`)).toMatchObject({ code: 0, stdout: '' })

    expect(['files/old', 'files/new'].map(contentOf)).toEqual([WHOLE, WHOLE])
    // Moved over /dev/null itself, it would break the whole system.
    expect(fs.readlinkSync(workspace.file('files/device'))).toBe('/dev/null')
    expect(fs.readdirSync(workspace.file('files')).toSorted()).toEqual([
      'device',
      'new',
      'not-there',
      'old',
      'there',
    ])
  })

  it('clears away what a killed export has left there, and no other file', async () => {
    makeFolder('left')
    const [dead, perhapsAlive] = ['4711-0123456789ab', '4712-0123456789ab']
    fs.writeFileSync(workspace.file(`mirror.db-owners/${dead}`), '')
    const others = ['.orders.4712-0123456789ab.unfinished', 'orders.unfinished']
    for (const name of [`.orders.${dead}.unfinished`, ...others])
      fs.writeFileSync(workspace.file(`left/${name}`), 'half')

    expect((await exported(...TO_FILE, 'left/orders')).code).toBe(0)

    expect(perhapsAlive).toBe(others[0]?.split('.')[2])
    expect(fs.readdirSync(workspace.file('left')).toSorted()).toEqual([...others, 'orders'].toSorted())
  })

  it('is whole although the process that reads has ended before anything is written', async () => {
    const place = { cwd: workspace.folder, env: { ADMIN_MIRROR_CONFIG: workspace.file('admin-mirror.yaml') } }

    const { code } = await runInProcess(['export', ...TO_FILE, 'late.ndjson'], { ...place, randomHex: still })

    expect([code, contentOf('late.ndjson')]).toEqual([0, WHOLE])
  })

  it('- is standard output, and /dev/stdout adds to its file', async () => {
    fs.writeFileSync(workspace.file('report'), 'of yesterday\n')
    const through = ['sh', '-c', `exec "$@" >> ${workspace.file('report')}`, 'sh']

    expect(await exported(...TO_FILE, '-')).toMatchObject({ code: 0, stdout: WHOLE })
    expect((await workspace.run(['export', ...TO_FILE, '/dev/stdout'], { through })).code).toBe(0)
    expect(contentOf('report')).toBe(`of yesterday\n${WHOLE}`)
  })

  it('writes into a pipe as it is, with a name or without', async () => {
    mustRun('mkfifo', workspace.file('pipe'))
    const named = workspace.start(['export', ...TO_FILE, 'pipe'])
    expect(contentOf('pipe')).toBe(WHOLE)
    expect((await named.ended).code).toBe(0)
    expect(fs.statSync(workspace.file('pipe')).isFIFO()).toBe(true)

    // The pipe's other end is a cat that writes what comes to standard output.
    const through = ['sh', '-c', '"$@" 3>&1 >&2 | cat', 'sh']
    expect(await workspace.run(['export', ...TO_FILE, '/dev/fd/3'], { through })).toMatchObject({
      code: 0,
      stdout: WHOLE,
    })
  })

  it('leaves what was there, and nothing else, when it is stopped', async () => {
    makeFolder('stopped')
    fs.writeFileSync(workspace.file('stopped/orders'), 'yesterday')
    let meanwhile: string[] = []
    const names = () => fs.readdirSync(workspace.file('stopped'))
    const end = watchEdges({
      after({ what, file }) {
        if (!what.startsWith('fs.open ') || !file.startsWith(workspace.file('stopped'))) return
        meanwhile = names()
        running.kill('SIGTERM')
      },
    })

    const running = workspace.startHere(['export', ...TO_FILE, 'stopped/orders'])

    expect(await running.ended).toMatchObject({ code: 143, stdout: '' })
    end()
    expect(meanwhile).toHaveLength(2)
    expect([names(), contentOf('stopped/orders')]).toEqual([['orders'], 'yesterday'])
  })
})

describe('export to a file that the mirror lives on', () => {
  const files = ['globex.token', 'hooli.token']
  const organizations = [
    ACME,
    { id: GLOBEX.id, name: 'globex', tokenFile: 'globex.token' },
    // Its path has a variable.
    { id: ACME.id.replace(/1$/, '3'), name: 'hooli', tokenFile: `${variable('FOLDER')}/hooli.token` },
  ]
  it.override({ options: { settings: { organizations } } })

  it('exits with 2, and touches nothing', async ({ scene }) => {
    const made = scene.workspace
    const env = { FOLDER: made.folder }
    for (const name of files) fs.writeFileSync(made.file(name), `secret of ${name}`)
    await made.run(['sync', '--org', 'acme'], { env })
    scene.configure({ publish: 'published.db' })
    for (const name of ['mirror.db', 'mirror.db-wal', 'globex.token'])
      fs.symlinkSync(name, made.file(`link-${name}`))
    for (const name of ['mirror.db', 'admin-mirror.yaml', 'globex.token'])
      fs.linkSync(made.file(name), made.file(`hard-${name}`))
    fs.symlinkSync(made.folder, made.file('linked'))
    const before = contents(made)

    for (const output of [
      'mirror.db',
      'mirror.db-wal',
      'mirror.db-shm',
      'mirror.db-owners/somebody',
      'admin-mirror.yaml',
      ...files,
      'published.db',
      'link-mirror.db',
      'link-mirror.db-wal',
      'link-globex.token',
      'linked/mirror.db',
      'hard-mirror.db',
      'hard-admin-mirror.yaml',
      'hard-globex.token',
    ]) {
      const args = ['export', 'orders', '--format', 'csv', '--output', output]
      const { code, stdout, stderr } = await made.run(args, { env })
      expect({ output, code, stdout }).toEqual({ output, code: 2, stdout: '' })
      expect(stderr).toMatch(/--output .*a file of the mirror/)
    }
    expect(contents(made)).toEqual(before)
  })
})

function still(): string {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
  return '0123456789abcdef'
}

/** All files of the folder, without -wal and -shm, which every reader makes. */
function contents({ folder, file }: Workspace): Record<string, string> {
  const names = fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !/-(?:wal|shm)$/.test(entry.name))
    .map(({ name }) => name)
  return Object.fromEntries(names.map((name) => [name, fs.readFileSync(file(name), 'latin1')]))
}
