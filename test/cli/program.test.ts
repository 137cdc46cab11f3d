import fs from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { exitCodeOfJobs } from '../../src/cli/exit-code.ts'
import { type ErrorCode, ERRORS, JobError } from '../../src/errors.ts'
import type { JobResult } from '../../src/sync/job.ts'
import { jobOf } from '../helpers/jobs.ts'
import type { ListServer } from '../helpers/list-server.ts'
import { ACME, createScene, GLOBEX, sceneTests } from '../helpers/scene.ts'
import { createWorkspace, type Workspace } from '../helpers/workspace.ts'

const it = sceneTests()

// What all commands have in common: words that are wrong, help, the version, exit codes, --quiet, --log-format, the configuration file.

let server: ListServer
let workspace: Workspace

beforeAll(async () => {
  const collections = { orders: { filters: { state: 'paid' } }, establishments: false }
  ;({ server, workspace } = await createScene({ settings: { collections } }))
})

const typed = (line: string) => workspace.run(line.split(' ').filter((word) => word !== ''))

function nothingHappened(): void {
  expect(server.asked).toEqual([])
  expect(fs.readdirSync(workspace.folder)).toEqual(['admin-mirror.yaml'])
}

it.for<[string, RegExp]>([
  ['', /Usage: admin-mirror/],
  ['snyc', /unknown command 'snyc'\n\(Did you mean sync\?\)/],
  ['sync --colection orders', /unknown option '--colection'\n\(Did you mean --collection\?\)/],
  ['sync acme', /too many arguments/],
  ['sync --org', /argument missing/],
  ['sync --org globex', /--org globex: .*acme/],
  ['sync --collection orders --collection invoices', /--collection invoices: .*orders/],
  ['sync --refresh --accept-removals', /--accept-removals: a refresh removes nothing/],
  ['sync --log-level loud', /loud.*trace, debug, info/],
  ['sync --config nowhere.yaml', /nowhere\.yaml.*no such/],
  ['backfill', /--org/],
  ['backfill --org acme --filter state', /NAME=VALUE/],
  ['backfill --org acme --filter page=2', /--from-page/],
  ['backfill --org acme --filter state=open', /state=open.*acme orders.*state=paid/],
  ['backfill --org acme --from-page 0', /'0'.*whole number/],
  ['status --max-age 5', /--max-age 5: .*30m/],
  ['query', /missing required argument 'sql'/],
  ['query SELECT --format xml', /xml.*table, json, ndjson, csv/],
  ['query SELEC', /syntax error/],
  ['query /*all*/DELETE/**/FROM/**/orders', /query only reads/],
  ['export orders', /--format/],
  ['export order --format csv', /no table or view order; there are: orders/],
  ['export orders --format csv --org globex', /--org globex: .*acme/],
  ['snapshot', /missing required argument 'file'/],
  ['snapshot admin-mirror.yaml/copy.db', /copy\.db cannot be made \(ENOTDIR\)/],
  ['resume --org globex', /--org globex/],
  ['forget --yes', /--org/],
  ['forget --org acme', /deletes for good, so it needs --yes/],
  ['forget --org acme --org globex --yes', /one --org/],
  ['forget --org nobody --yes', /--org nobody: there is no organization/],
  ['move --from mirror.db', /--to/],
  ['sandbox --port 70000', /70000/],
  ['sandbox --write-config .', /is there already/],
  [`sandbox --write-config ${'n'.repeat(300)}`, /name another file/],
  ['sandbox --write-config admin-mirror.yaml/x.yaml', /--write-config \/.*x\.yaml cannot be written/],
])(
  'a command that is typed wrongly (%s) exits with 2 and says why; nothing is sent or written',
  async ([line, reason]) => {
    expect(await typed(line)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(reason) })
    nothingHappened()
  },
)

it.for([
  'query VALUES(1)',
  'export orders --format csv',
  'snapshot copy.db',
  'verify',
  'forget --org acme --collection orders --yes',
  'resume --org acme',
])('where there is no mirror yet, %s says so, and makes none', async (line) => {
  const stderr = expect.stringMatching(/there is no mirror at \S+ yet/)
  expect(await typed(line)).toMatchObject({ code: 4, stdout: '', stderr })
  nothingHappened()
})

it('the configuration is that of --config, else of ADMIN_MIRROR_CONFIG, else config/admin-mirror.yaml; all its problems are told, exit code 2', async ({
  scene: { workspace: place },
}) => {
  fs.mkdirSync(place.file('config'))
  for (const name of ['typed', 'variable', 'config/admin-mirror'])
    fs.writeFileSync(place.file(`${name}.yaml`), `${path.basename(name)}: here`)

  for (const [typedFile, named, name] of [
    ['typed.yaml', 'variable.yaml', 'typed'],
    [null, 'variable.yaml', 'variable'],
    [null, '', 'admin-mirror'],
  ] as const) {
    const args = typedFile === null ? ['sync'] : ['sync', '--config', typedFile]
    const { code, stderr } = await place.run(args, { env: { ADMIN_MIRROR_CONFIG: named } })
    expect([code, stderr.split('\n').length > 3]).toEqual([2, true])
    expect(stderr.split('/').at(-1)).toMatch(name)
  }
})

describe('help', async () => {
  const { stdout } = await createWorkspace().run(['-h'])
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) .*\w/gm)].map(([, name = '']) => name)
  const listed = commands.filter((name) => !['admin', 'help'].includes(name))

  it('lists every command, with examples and what exit codes mean', () => {
    const all =
      'start sync backfill status query export verify snapshot check resume forget move sandbox demo'
    expect(listed).toEqual(all.split(' '))
    expect(stdout).toMatch(/Examples:\n {2}admin-mirror demo/)
    expect(stdout).toMatch(/Exit codes:\n {2}0 {4}all that was asked for is done/)
  })

  it('of each command has an example that can be typed', async () => {
    for (const command of listed) {
      const help = await createWorkspace().run([command, '-h'])

      expect(help).toMatchObject({ code: 0, stderr: '' })
      expect(help.stdout).toMatch(new RegExp(`Examples:\n {2}admin-mirror ${command}`))
      const [known = '', example = ''] = help.stdout.split('Examples:')
      const options = example.match(/--[a-z][a-z-]*/g) ?? []
      expect(options.filter((option) => !known.includes(option))).toEqual([])
    }
  })

  it('and the version are there with every spelling, and alone; files name the version, too', async () => {
    const { version } = manifest
    for (const line of ['-V', '--version', 'sync --version', 'query --version'])
      expect(await typed(line)).toMatchObject({ code: 0, stderr: '', stdout: `${version}\n` })
    for (const line of ['-h', '--help', 'help']) expect(await typed(line)).toMatchObject({ code: 0, stdout })
    for (const [file, text] of [
      ['CHANGELOG.md', `\n## ${version}\n`],
      ['package-lock.json', `"version": "${version}"`],
      ['config/kubernetes.example.yaml', `image: admin-mirror:${version}\n`],
    ] as const)
      expect(fs.readFileSync(path.resolve(import.meta.dirname, '../..', file), 'utf8')).toContain(text)
  })
})

const ended = (code: ErrorCode | null) =>
  ({ job: jobOf(), error: code && new JobError(code, 'it failed'), heldBack: null }) as JobResult
const exitCode = (codes: (ErrorCode | null)[], signal = new AbortController().signal) =>
  exitCodeOfJobs(codes.map(ended), signal)

describe('the exit code', () => {
  it('of a job that failed is that of its error', () => {
    const { 1: failed, ...others } = Object.groupBy(Object.keys(ERRORS) as ErrorCode[], (code) =>
      exitCode([code]),
    )

    expect(others).toEqual({
      3: ['BAD_REQUEST', 'UNAUTHORIZED', 'FORBIDDEN', 'ORGANIZATION_NOT_FOUND'],
      4: ['DATABASE'],
      5: ['INCOMPLETE', 'REMOVALS_HELD'],
    })
    expect(failed).toHaveLength(Object.keys(ERRORS).length - 7)
  })

  it.for<[(ErrorCode | null)[], string | null, number]>([
    [[null, null], null, 0],
    [[null, 'NETWORK'], null, 1],
    [['NETWORK', 'INCOMPLETE'], null, 5],
    [['INCOMPLETE', 'FORBIDDEN', 'BUSY'], null, 3],
    [['UNAUTHORIZED', 'DATABASE', 'INCOMPLETE'], null, 4],
    [['DATABASE'], 'SIGHUP', 129],
    [['DATABASE'], 'SIGINT', 130],
    [['DATABASE'], 'SIGTERM', 143],
  ])('of jobs that ended with %j, after the signal %s, is %i', ([codes, signal, expected]) => {
    expect(exitCode(codes, signal === null ? undefined : AbortSignal.abort(signal))).toBe(expected)
  })
})

it('--quiet leaves nothing of what goes well, and the errors of what fails', async ({
  scene: { workspace: place, api, configure },
}) => {
  configure({ organizations: [ACME, GLOBEX] })
  api.instead = ({ organization: id }) => (id === GLOBEX.id ? { status: 404, body: {} } : null)
  const quiet = (line: string) => place.run([...line.split(' '), '--quiet'])
  const { logs } = await quiet('sync')

  expect(logs).toMatchObject([{ level: 'error', error_code: 'ORGANIZATION_NOT_FOUND' }])
  for (const line of ['sync --org acme', 'resume'])
    expect(await quiet(line)).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect((await quiet('sync --org nobody')).stderr).toContain('--org nobody')
})

it('--log-format pretty writes sentences where nobody watches, json objects', async ({
  scene: { workspace: place, api },
}) => {
  let failures = 1
  api.instead = () => (failures-- > 0 ? { status: 500, body: {} } : null)
  const formatted = (format: string) => place.run(['sync', '--log-format', format])
  const [pretty, json] = [await formatted('pretty'), await formatted('json')]

  expect(pretty.stderr).toMatch(/WARN: acme orders page 1: .*\(500\).*; trying again/)
  expect(pretty.stderr).toMatch(/INFO: acme orders run finished: 3 pages, 4 new, 0 changed, steady/)
  // No escapes either: it may be a file.
  expect(pretty.stderr.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
  expect(json.stderr.trim().split('\n')).toHaveLength(json.logs.length)
})

it('a name that a terminal would reorder and a shell would split is escaped by every command, and quoted in those that messages propose', async ({
  scene: { workspace: place, api, configure },
}) => {
  const name = "it's \u202eacme"
  configure({ organizations: [{ ...ACME, name }] })
  await place.run(['sync'])
  api.instead = () => ({ status: 401, body: {} })
  const refused = await place.run(['sync'])

  for (const args of [
    ...[
      'sync --log-format pretty',
      'verify',
      'status',
      'status --json',
      'check',
      'resume',
      'sync --org nobody',
    ].map((line) => line.split(' ')),
    ['backfill', '--org', name],
    ['forget', '--org', name, '--yes'],
  ]) {
    const { stdout, stderr } = await place.run(args)
    expect(`${args.join(' ')}: ${stdout}${stderr}`).toMatch(/\\u\{?202e/)
    expect(stdout + stderr).not.toMatch(/\p{Cf}/u)
  }
  const unauthorized = refused.logs.find(({ error_code: code }) => code === 'UNAUTHORIZED')
  expect(unauthorized?.error_message).toMatch(/admin-mirror resume --org 'it'\\''s \\u\{?202e\}?acme'/)
})
