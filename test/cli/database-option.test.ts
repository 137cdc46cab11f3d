import fs from 'node:fs'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { IS_ROOT, mustRun, runs } from '../helpers/system.ts'
import { items, pageOf, serve } from './list-server.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

// Analysts have a file and no configuration.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const ANALYST = { through: ['setpriv', '--reuid=10002', '--regid=10002', '--clear-groups', '--'] }
const COUNT = 'SELECT count(*) AS n FROM orders'

let workspace: Workspace

beforeAll(async () => {
  const server = await serve((asked) => pageOf(items(3), asked))
  workspace = createWorkspace({
    baseUrl: server.url,
    organizations: [organization('acme', 1), organization('globex', 2)],
  })
  await workspace.run(['sync'])
  copy(workspace.file('published.db'))
  fs.mkdirSync(workspace.file('shared'))
  copy(workspace.file('shared/published.db'))
  fs.copyFileSync(workspace.mirror, workspace.file('shared/wal.db'))
  fs.chmodSync(workspace.folder, 0o755)
  for (const name of ['published.db', 'wal.db']) fs.chmodSync(workspace.file(`shared/${name}`), 0o644)
})

/** One file, not in WAL mode. */
function copy(file: string): void {
  const connection = new Database(workspace.mirror, { readonly: true })
  connection.prepare('VACUUM INTO ?').run(file)
  connection.close()
}

const COMMANDS: string[][] = [
  ['query', COUNT],
  ['export', 'orders', '--format', 'csv'],
  ['describe'],
  ['status'],
]

/** Without a configuration anywhere. */
const bare = (args: readonly string[], options = {}) =>
  workspace.run(args, { ...options, env: { ADMIN_MIRROR_CONFIG: workspace.file('there-is-none.yaml') } })

describe.concurrent('--database', () => {
  it.each(COMMANDS)('needs no configuration: %s', async (...args) => {
    for (const file of ['mirror.db', 'published.db']) {
      const { code, stdout, stderr } = await bare([...args, '--database', file])

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).not.toBe('')
    }
  })

  it.each(COMMANDS)('without it and without a configuration exits with 2: %s', async (...args) => {
    expect((await bare(args)).code).toBe(2)
  })

  it.each([...COMMANDS, ['snapshot', 'made.db']])(
    'exits with 4 for a file that is none of ours, and says so: %s',
    async (...args) => {
      const other = new Database(workspace.file(`other-${args[0]}.db`))
      other.exec('CREATE TABLE orders (id)')
      other.close()
      fs.writeFileSync(workspace.file(`text-${args[0]}`), 'x'.repeat(200))

      for (const [file, why] of [
        [`other-${args[0]}.db`, /database of something else, not a mirror/],
        [`text-${args[0]}`, /no SQLite database/],
        ['absent.db', /there is no mirror, and no copy of one/],
        ['.', /is a folder/],
        // Its first bytes cannot be read.
        ['/proc/self/mem', /DATABASE: \/proc\/self\/mem .*EIO/],
        ['', /--database: name a file/],
      ] as const) {
        const { code, stdout, stderr } = await bare([...args, '--database', file])

        expect({ code, stdout }).toEqual({ code: file === '' ? 2 : 4, stdout: '' })
        expect(stderr).toMatch(why)
        expect(stderr).not.toMatch(/Choose another|admin-mirror sync/)
      }
      expect(fs.existsSync(workspace.file('absent.db'))).toBe(false)
      expect(fs.existsSync(workspace.file('made.db'))).toBe(false)
    },
  )

  it('ends status with 4 for a pipe, whatever numbers stand beside it', async () => {
    const pipe = workspace.file('pipe.db')
    mustRun('mkfifo', pipe)
    fs.writeFileSync(`${pipe}.json`, '{"sha256":"","created_at":"","bytes":0}')

    expect(await bare(['status', '--database', pipe])).toMatchObject({ code: 4, stdout: '' })
  })

  it('goes before a configuration, which is not read then', async () => {
    fs.writeFileSync(workspace.file('wrong.yaml'), 'nonsense: [')

    const { code, stdout } = await workspace.run([
      'query',
      COUNT,
      '--format',
      'csv',
      '--config',
      'wrong.yaml',
      '--database',
      'published.db',
    ])

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'n\n6\n' })
  })

  it('finds organizations by the names and ids that the file knows', async () => {
    const args = ['export', 'orders', '--format', 'ndjson', '--database', 'published.db', '--org']

    const [byName, byId, unknown] = await Promise.all([
      bare([...args, 'acme']),
      bare([...args, organization('globex', 2).id]),
      bare([...args, 'nobody']),
    ])

    expect([byName, byId].map(({ stdout }) => stdout.trimEnd().split('\n').length)).toEqual([3, 3])
    expect(unknown).toMatchObject({ code: 2, stdout: '' })
    expect(unknown.stderr).toMatch(/--org nobody: the mirror has no organization .*acme, globex/)
  })

  it('reads a copy that an older version has made, as far as its tables go', async () => {
    fs.copyFileSync(workspace.file('published.db'), workspace.file('older.db'))
    const connection = new Database(workspace.file('older.db'))
    connection.pragma('user_version = 1')
    connection.close()

    expect(await bare(['query', COUNT, '--format', 'csv', '--database', 'older.db'])).toMatchObject({
      code: 0,
      stdout: 'n\n6\n',
    })
  })

  it('tells the freshness of a file without the workings of the program', async () => {
    const file = workspace.file('bare.db')
    await workspace.run(['snapshot', file])

    for (const args of COMMANDS) expect((await bare([...args, '--database', 'bare.db'])).code).toBe(0)
    const { stdout } = await bare(['status', '--json', '--database', 'bare.db'])
    expect(JSON.parse(stdout).jobs).toMatchObject([
      { organization: 'acme', collection: 'orders', rows: 3, coverage: 'steady' },
      { organization: 'globex', collection: 'orders', rows: 3, coverage: 'steady' },
    ])
  })

  it('does not write over the file that it reads', async () => {
    for (const output of ['published.db', 'published.db-wal']) {
      const args = ['query', COUNT, '--database', 'published.db', '--output', output]

      expect(await bare(args)).toMatchObject({ code: 2, stdout: '' })
    }
  })
})

describe.skipIf(!CAN_BE_OTHERS)('--database in a folder that one may not write (needs root)', () => {
  it('reads a published file', async () => {
    const args = ['query', COUNT, '--format', 'csv', '--database', 'shared/published.db']

    expect(await bare(args, ANALYST)).toMatchObject({ code: 0, stdout: 'n\n6\n' })
  })

  it('names the way out for a mirror in WAL mode', async () => {
    const { code, stderr } = await bare(['query', COUNT, '--database', 'shared/wal.db'], ANALYST)

    expect(code).toBe(4)
    expect(stderr).toMatch(/WAL mode.*admin-mirror snapshot/)
  })
})
