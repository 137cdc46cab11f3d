import fs from 'node:fs'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { ACME, createScene, GLOBEX } from '../helpers/scene.ts'
import { IS_ROOT, mustRun, runs } from '../helpers/system.ts'
import type { Workspace } from '../helpers/workspace.ts'

// Analysts have a file and no configuration.

const CAN_BE_OTHERS = IS_ROOT && runs('setpriv', '--version')
const ANALYST = { through: ['setpriv', '--reuid=10002', '--regid=10002', '--clear-groups', '--'] }
const COUNT = 'SELECT count(*) AS n FROM orders'

let workspace: Workspace

beforeAll(async () => {
  ;({ workspace } = await createScene({ list: items(3), settings: { organizations: [ACME, GLOBEX] } }))
  await workspace.run(['sync'])
  await workspace.run(['snapshot', 'published.db'])
  fs.copyFileSync(workspace.file('published.db'), workspace.file('older.db'))
  const older = new Database(workspace.file('older.db'))
  older.pragma('user_version = 1')
  older.close()
  fs.mkdirSync(workspace.file('shared'))
  fs.copyFileSync(workspace.file('published.db'), workspace.file('shared/published.db'))
  fs.copyFileSync(workspace.mirror, workspace.file('shared/wal.db'))
  fs.chmodSync(workspace.folder, 0o755)
  for (const name of ['published.db', 'wal.db']) fs.chmodSync(workspace.file(`shared/${name}`), 0o644)
  new Database(workspace.file('other.db')).exec('CREATE TABLE orders (id)').close()
  fs.writeFileSync(workspace.file('text'), 'x'.repeat(200))
  mustRun('mkfifo', workspace.file('pipe.db'))
  // Whatever numbers stand beside it.
  fs.writeFileSync(workspace.file('pipe.db.json'), '{"sha256":"","created_at":"","bytes":0}')
})

const READING = [['query', COUNT], ['export', 'orders', '--format', 'csv'], ['status']]

/** Without a configuration anywhere. */
const bare = (args: readonly string[], options = {}) =>
  workspace.run(args, { ...options, env: { ADMIN_MIRROR_CONFIG: workspace.file('there-is-none.yaml') } })

describe('--database', () => {
  it.each(READING)(
    'is all that a command needs which reads, and needs where there is no configuration: %s',
    async (...args) => {
      for (const file of ['mirror.db', 'published.db']) {
        const { code, stdout, stderr } = await bare([...args, '--database', file])
        expect({ file, code, stderr }).toEqual({ file, code: 0, stderr: '' })
        expect(stdout).not.toBe('')
      }
      expect((await bare(args)).code).toBe(2)
    },
  )

  it.each([...READING, ['snapshot', 'made.db']])(
    'exits with 4 for a file that is none of ours, and says so: %s',
    async (...args) => {
      for (const [file, why] of [
        ['other.db', /database of something else, not a mirror/],
        ['text', /no SQLite database/],
        ['older.db', /made by a version before 1\.0\.0.*read the lists again/],
        ['absent.db', /there is no mirror, and no copy of one/],
        ['.', /is a folder/],
        ['pipe.db', /is a pipe/],
        // Its first bytes cannot be read.
        ['/proc/self/mem', /DATABASE: \/proc\/self\/mem .*EIO/],
        ['', /--database: name a file/],
      ] as const) {
        const { code, stdout, stderr } = await bare([...args, '--database', file])
        expect({ file, code, stdout }).toEqual({ file, code: file === '' ? 2 : 4, stdout: '' })
        expect(stderr).toMatch(why)
        expect(stderr).not.toMatch(/Choose another|admin-mirror sync/)
      }
      expect(['absent.db', 'made.db'].map((name) => fs.existsSync(workspace.file(name)))).toEqual([
        false,
        false,
      ])
    },
  )

  it('goes before a configuration, which is not read then', async () => {
    fs.writeFileSync(workspace.file('wrong.yaml'), 'nonsense: [')
    const args = ['query', COUNT, '--format', 'csv', '--config', 'wrong.yaml', '--database', 'published.db']

    expect(await workspace.run(args)).toMatchObject({ code: 0, stdout: 'n\n6\n' })
  })

  it('finds organizations by the names and ids that the file knows', async () => {
    const args = ['export', 'orders', '--format', 'ndjson', '--database', 'published.db', '--org']

    for (const name of ['acme', GLOBEX.id])
      expect((await bare([...args, name])).stdout.trimEnd().split('\n')).toHaveLength(3)
    expect(await bare([...args, 'nobody'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/--org nobody: neither the mirror nor .*acme, globex/),
    })
  })

  it('tells the freshness of a file without the workings of the program', async () => {
    const { stdout } = await bare(['status', '--json', '--database', 'published.db'])

    expect(JSON.parse(stdout).jobs).toMatchObject([
      { organization: 'acme', collection: 'orders', rows: 3, coverage: 'steady' },
      { organization: 'globex', collection: 'orders', rows: 3, coverage: 'steady' },
    ])
  })
})

describe.skipIf(!CAN_BE_OTHERS)('--database in a folder that one may not write (needs root)', () => {
  it('reads a published file, and names the way out for a mirror in WAL mode', async () => {
    const args = ['query', COUNT, '--format', 'csv', '--database']

    expect(await bare([...args, 'shared/published.db'], ANALYST)).toMatchObject({ code: 0, stdout: 'n\n6\n' })
    expect(await bare([...args, 'shared/wal.db'], ANALYST)).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/WAL mode.*admin-mirror snapshot/),
    })
  })
})
