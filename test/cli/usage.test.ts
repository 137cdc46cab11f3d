import fs from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { items, type ListServer, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, variable, type Workspace } from './workspace.ts'

let server: ListServer
let workspace: Workspace

beforeAll(async () => {
  server = await serve((asked) => pageOf(items(2), asked))
  workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1)],
    collections: { orders: { filters: { state: 'paid' } }, establishments: false },
  })
  fs.writeFileSync(
    workspace.file('bad.yaml'),
    [
      'api:',
      `  baseUrl: ${server.url}`,
      '  timeuot: 3s',
      'database: mirror.db',
      'schedule: every day',
      'organizations:',
      '  - id: no-uuid',
      '    name: acme',
      `    token: ${variable('MISSING_TOKEN')}`,
    ].join('\n'),
  )
})

function nothingHappened(): void {
  expect(server.asked).toEqual([])
  expect(fs.readdirSync(workspace.folder).toSorted()).toEqual(['admin-mirror.yaml', 'bad.yaml'])
}

describe.concurrent('a command that is typed wrongly', () => {
  it.each([
    ['', /Usage: admin-mirror/],
    ['snyc', /unknown command 'snyc'\n\(Did you mean sync\?\)/],
    ['verify-all', /unknown command/],
    ['sync --colection orders', /unknown option '--colection'\n\(Did you mean --collection\?\)/],
    ['sync acme', /too many arguments/],
    ['sync --org', /argument missing/],
    ['sync --org globex', /--org globex: .*acme/],
    ['sync --collection orders --collection invoices', /--collection invoices: .*orders/],
    ['sync --log-level loud', /loud.*trace, debug, info/],
    ['sync --config nowhere.yaml', /nowhere\.yaml.*no such/],
    ['backfill', /--org/],
    ['backfill --org acme --filter state', /NAME=VALUE/],
    ['backfill --org acme --filter =paid', /NAME=VALUE/],
    ['backfill --org acme --filter page=2', /--from-page/],
    ['backfill --org acme --filter state=open', /state=open.*acme orders.*state=paid/],
    ['backfill --org acme --from-page 0', /'0'.*whole number/],
    ['backfill --org acme --from-page 1.5', /1\.5.*whole number/],
    ['status --max-age 5', /--max-age 5: .*30m/],
    ['status --max-age tomorrow', /--max-age tomorrow/],
    ['query', /missing required argument 'sql'/],
    ['query SELECT --format xml', /xml.*table, json, ndjson, csv/],
    ['export orders', /--format/],
    ['export orders --format xlsx', /xlsx/],
    ['query SELEC', /syntax error/],
    ['query SELECT;SELECT', /cannot be run/],
    ['export invoices --format csv', /no collection invoices/],
    ['resume --org globex', /--org globex/],
    ['verify --org globex', /--org globex/],
    ['verify --collection invoices', /--collection invoices/],
    ['rebuild orders invoices', /no collection invoices/],
    ['forget --org acme', /only with --yes/],
    ['forget --org globex --yes', /--org globex: .*acme/],
    ['forget --org acme --collection invoices --yes', /--collection invoices: .*orders/],
    ['sandbox --port 70000', /70000/],
    ['sandbox --orders -5', /-5|whole number/],
    ['sandbox --order newest', /first, last/],
    ['sandbox --live --speed 0', /--speed/],
    ['sandbox --speed 60', /--speed.*--live/],
  ])('(%s) exits with 2 and says why; nothing is sent or written', async (line, reason) => {
    const args = line.split(' ').filter((word) => word !== '')

    const { code, stdout, stderr } = await workspace.run(args)

    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(reason)
    nothingHappened()
  })

  it('with a bad configuration is told all problems at once, each with its line and key', async () => {
    const { code, stderr } = await workspace.run(['sync', '--config', 'bad.yaml'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/3.*api\.timeuot.*api\.timeout|3.*timeuot.*timeout/)
    expect(stderr).toMatch(/5.*schedule/)
    expect(stderr).toMatch(/7.*organizations.*id/)
    expect(stderr).toMatch(/9.*MISSING_TOKEN/)
    nothingHappened()
  })

  it('refuses NODE_DEBUG, with which Node itself would print the token', async () => {
    const { code, stderr } = await workspace.run(['sync'], { env: { NODE_DEBUG: 'http' } })

    expect(code).toBe(2)
    expect(stderr).toContain('NODE_DEBUG')
    nothingHappened()
  })
})

describe.concurrent('a command that is typed rightly, where there is no mirror yet,', () => {
  it.each([
    ['query', ['query', 'SELECT id FROM orders'], 4],
    ['export', ['export', 'orders', '--format', 'csv'], 4],
    ['verify', ['verify'], 4],
    ['rebuild', ['rebuild', 'orders'], 4],
    ['forget', ['forget', '--org', 'acme', '--collection', 'orders', '--yes'], 0],
    ['resume', ['resume', '--org', 'acme'], 0],
  ])('%s says so, and makes none', async (_, args, expected) => {
    const { code, stdout, stderr } = await workspace.run(args)

    expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
    expect(stderr).toMatch(/there is no mirror at \S+ yet/)
    nothingHappened()
  })
})

it('forget says that it needs --yes also of a mirror that cannot be read', async () => {
  const place = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  fs.writeFileSync(place.mirror, 'no database '.repeat(100))

  const { code, stderr } = await place.run(['forget', '--org', 'acme'])

  expect(code).toBe(2)
  expect(stderr).toMatch(/only with --yes\. What would go is unknown: .*no SQLite database/)
})

describe.concurrent('help and version', () => {
  it.each(['--version', 'sync --version', 'query --version'])('%s prints the version alone', async (line) => {
    const version = await workspace.run(line.split(' '))

    expect(version).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  it.each([
    ['--help', 'backfill'],
    ['help', 'backfill'],
    ['sync --help', '--accept-removals'],
    ['backfill --help', '--from-page'],
    ['status --help', '--config'],
  ])('%s goes to standard output and exits with 0', async (line, word) => {
    const help = await workspace.run(line.split(' '))

    expect(help).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(word) })
  })
})

describe.concurrent('the configuration file', () => {
  it('is the one of --config, else of ADMIN_MIRROR_CONFIG, else config/admin-mirror.yaml', async () => {
    const place = createWorkspace()
    const write = (name: string, database: string) =>
      fs.writeFileSync(
        place.file(name),
        JSON.stringify({ api: { baseUrl: server.url }, database, organizations: [organization('acme', 1)] }),
      )
    fs.mkdirSync(place.file('config'))
    write('config/admin-mirror.yaml', 'default.db')
    write('variable.yaml', 'variable.db')
    write('option.yaml', 'option.db')
    const usedWith = async (args: string[], inEnvironment: string) => {
      const env = { ADMIN_MIRROR_CONFIG: inEnvironment }
      const { stdout } = await place.run(['status', '--json', ...args], { env })
      return (JSON.parse(stdout) as { database: string }).database
    }

    // An empty variable counts as none, as everywhere in containers.
    expect(await usedWith([], '')).toBe(place.file('config/default.db'))
    expect(await usedWith([], 'variable.yaml')).toBe(place.file('variable.db'))
    expect(await usedWith(['--config', 'option.yaml'], 'variable.yaml')).toBe(place.file('option.db'))
  })
})
