import { describe, expect, it } from 'vitest'
import { SyncSchema, VerifySchema } from '../../src/cli/output/results.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization } from './workspace.ts'

const ACME = organization('acme', 1)
const GLOBEX = organization('globex', 2)

/** Two organizations; the API does not know the second. */
async function createScene() {
  const server = await serve((asked) =>
    asked.organization === GLOBEX.id ? { status: 404, body: {} } : pageOf(items(4), asked),
  )
  return createWorkspace({ baseUrl: server.url, organizations: [ACME, GLOBEX] })
}

describe('help', async () => {
  const { stdout } = await createWorkspace().run(['-h'])
  const commands = [...stdout.matchAll(/^ {2}([a-z]+) .*\w/gm)].map(([, name = '']) => name)
  const listed = commands.filter((name) => !['admin', 'help'].includes(name))

  it('lists every command, demo too, with examples and what exit codes mean', () => {
    expect(listed).toEqual(expect.arrayContaining(['start', 'sync', 'status', 'check', 'verify', 'demo']))
    expect(stdout).toMatch(/Examples:\n {2}admin-mirror demo/)
    expect(stdout).toMatch(/Exit codes:\n {2}0 {4}all that was asked for is done/)
  })

  it.concurrent.each(listed)(
    'of %s has an example that can be typed, and its exit codes',
    async (command) => {
      const help = await createWorkspace().run([command, '-h'])

      expect(help).toMatchObject({ code: 0, stderr: '' })
      expect(help.stdout).toMatch(new RegExp(`Examples:\n {2}admin-mirror ${command}`))
      expect(help.stdout).toMatch(/Exit codes:\n {2}0 +\S/)
      const example = help.stdout.slice(help.stdout.indexOf('Examples:'))
      const options = example.match(/--[a-z][a-z-]*/g) ?? []
      const known = help.stdout.slice(0, help.stdout.indexOf('Examples:'))
      expect(options.filter((option) => !known.includes(option))).toEqual([])
    },
  )

  it('-V is the version, as --version', async () => {
    const [short, long] = await Promise.all(
      ['-V', '--version'].map((option) => createWorkspace().run([option])),
    )

    expect(short?.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    expect(short?.stdout).toBe(long?.stdout)
  })
})

/** In a process of its own: the library for completion writes to that one's standard output. */
const typed = (...words: string[]) => createWorkspace().start(words).ended

describe.concurrent('completion', () => {
  it.each([
    [['sy'], 'sync'],
    [['sync', '--acc'], '--accept-removals'],
    [['--log-level', 'debug', 'query', '--format', ''], 'ndjson'],
  ])('of %j offers %s', async (words, offered) => {
    const { code, stdout, stderr } = await typed('complete', '--', ...words)

    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').map((line) => line.split('\t')[0])).toContain(offered)
  })

  it.each([
    [['query', 'SELECT 1', '--output', 'da'], ':0'],
    [['--config', ''], ':0'],
    [['snapshot', ''], ':0'],
    [['sync', '--org', ''], ':4'],
  ])('of %j has the shell complete files where one is meant: %s', async (words, directive) => {
    const { stdout } = await typed('complete', '--', ...words)

    expect(stdout.trimEnd().split('\n').at(-1)).toBe(directive)
  })

  it.each(['bash', 'zsh', 'fish'])('prints a script for %s that asks this program', async (shell) => {
    const { code, stdout } = await typed('completion', shell)

    expect(code).toBe(0)
    expect(stdout).toContain('admin-mirror complete --')
  })

  it('asks bash to complete files, which its script leaves to it', async () => {
    const { stdout } = await typed('completion', 'bash')

    expect(stdout).toContain('\n__admin_mirror_complete() {')
    expect(stdout).toMatch(/\ncomplete -o default -F __admin_mirror_complete admin-mirror\n$/)
  })

  it('knows its shells', async () => {
    const wrong = await createWorkspace().run(['completion', 'tcsh'])
    const none = await createWorkspace().run(['completion'])

    expect([wrong.code, none.code]).toEqual([2, 2])
    expect(wrong.stderr).toContain('Allowed choices are')
  })
})

describe.concurrent('--quiet', () => {
  it('leaves nothing of a sync that goes well, and the errors of one that fails', async () => {
    const workspace = await createScene()

    const well = await workspace.run(['sync', '--org', 'acme', '--quiet'])
    const failed = await workspace.run(['sync', '--quiet'])
    const wrong = await workspace.run(['sync', '--org', 'nobody', '--quiet'])

    expect(well).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect(failed.logs.map(({ level, error_code }) => [level, error_code])).toEqual([
      ['error', 'ORGANIZATION_NOT_FOUND'],
    ])
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--org nobody') })
  })

  it('leaves nothing of what commands without a log tell on the side', async () => {
    const workspace = await createScene()
    await workspace.run(['sync', '--org', 'acme'])

    expect(await workspace.run(['resume', '--quiet'])).toMatchObject({ code: 0, stdout: '', stderr: '' })
    expect((await workspace.run(['resume'])).stderr).not.toBe('')
  })
})

describe.concurrent('--log-format', () => {
  it('pretty writes sentences where nobody watches, json writes objects', async () => {
    const workspace = await createScene()

    const pretty = await workspace.run(['sync', '--org', 'acme', '--log-format', 'pretty'])
    const json = await workspace.run(['sync', '--org', 'acme', '--log-format', 'json'])

    expect(pretty.stderr).toMatch(/INFO: acme orders run finished, succeeded/)
    expect(pretty.logs).toEqual([])
    // No escapes either: it may be a file.
    expect(pretty.stderr.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    expect(json.logs).not.toEqual([])
    expect(json.stderr.trim().split('\n')).toHaveLength(json.logs.length)
  })

  it('is refused where it is another', async () => {
    expect(await (await createScene()).run(['sync', '--log-format', 'xml'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/xml.*json, pretty/),
    })
  })
})

describe.concurrent('--json', () => {
  it('of sync is one object, of the documented form', async () => {
    const workspace = await createScene()

    const { code, stdout } = await workspace.run(['sync', '--json'])
    const report = JSON.parse(stdout) as object

    expect(SyncSchema.parse(report)).toEqual(report)
    expect(report).toMatchObject({
      version: 1,
      exit_code: code,
      runs: [
        {
          organization: 'acme',
          collection: 'orders',
          status: 'succeeded',
          rows_added: 4,
          coverage: 'steady',
          error_code: null,
        },
        { organization: 'globex', status: 'failed', rows_added: 0, error_code: 'ORGANIZATION_NOT_FOUND' },
      ],
    })
    expect(code).toBe(3)
  })

  it('of verify is one object, of the documented form, without values', async () => {
    const workspace = await createScene()
    await workspace.run(['sync'])
    workspace.change(`UPDATE orders_raw SET _json = '{"id":1,"state":"mine"}' WHERE id = 1`)
    workspace.change('DELETE FROM orders_raw WHERE id = 2')

    const { code, stdout } = await workspace.run(['verify', '--json'])
    const report = JSON.parse(stdout) as object

    expect(VerifySchema.parse(report)).toEqual(report)
    expect(report).toMatchObject({
      version: 1,
      exit_code: code,
      lists: [
        {
          organization: 'acme',
          items: 4,
          missing: 1,
          extra: 0,
          different: 1,
          differences: expect.arrayContaining([
            { kind: 'different', key: '1', page: 1, fields: ['state'], more_fields: false, reject: null },
          ]),
        },
        { organization: 'globex', items: null, error_code: 'ORGANIZATION_NOT_FOUND' },
      ],
    })
    expect(stdout).not.toContain('mine')
    expect(code).toBe(3)
  })

  it.each(['sync', 'verify', 'check'])('of %s has a schema that schema prints', async (name) => {
    const { code, stdout } = await createWorkspace().run(['schema', name])

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      title: `admin-mirror ${name} --json`,
      properties: { version: { const: 1 } },
    })
  })
})
