import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { items } from '../helpers/list-server.ts'
import { createScene } from '../helpers/scene.ts'
import { IS_ROOT, runs } from '../helpers/system.ts'
import { createWorkspace, organization, type Workspace } from '../helpers/workspace.ts'

// What the package for Debian runs beside the service: a backup, and a look whether somebody has to be told.

const ROOT = path.resolve(import.meta.dirname, '../..')
const DEB = path.join(ROOT, 'config/package/deb')

/** A folder with the command as it is called where it is installed. */
function commandIn(workspace: Workspace): string {
  const file = workspace.file('bin/admin-mirror')
  fs.mkdirSync(path.dirname(file))
  const text = `#!/bin/sh\nexec "${process.execPath}" "${path.join(ROOT, 'src/bin.js')}" "$@"\n`
  fs.writeFileSync(file, text, { mode: 0o755 })
  return path.dirname(file)
}

describe('the backup', () => {
  let workspace: Workspace
  let env: NodeJS.ProcessEnv

  const copies = () => fs.readdirSync(workspace.file('backups')).toSorted()
  const backUp = (keep: string) =>
    execFileSync(process.execPath, [path.join(DEB, 'backup.js'), workspace.file('backups'), keep], { env })

  beforeAll(async () => {
    const scene = await createScene()
    ;({ workspace } = scene)
    await workspace.run(['sync'])
    scene.api.list = items(4).map((item) => ({ ...item, state: 'changed' }))
    await workspace.run(['sync'])
    const config = workspace.file('admin-mirror.yaml')
    env = { ...process.env, ADMIN_MIRROR_CONFIG: config, PATH: `${commandIn(workspace)}:${process.env.PATH}` }
  })

  it('keeps the newest copies, for its owner alone, and nothing unfinished', () => {
    for (const _ of [1, 2, 3]) backUp('2')
    const before = copies()
    fs.writeFileSync(workspace.file('backups/mirror of mine.db'), '')
    fs.writeFileSync(workspace.file('backups/unfinished.db'), 'of a killed one')

    backUp('2')

    expect(before).toHaveLength(2)
    expect(copies().slice(0, 2)).toEqual(['mirror of mine.db', before[1]])
    expect(copies().slice(2)).toEqual([expect.stringMatching(/^mirror-\d/)])
    expect(fs.statSync(workspace.file(`backups/${before[1]}`)).mode & 0o777).toBe(0o600)
  })

  it('leaves the copies as they are where there is nothing to copy', () => {
    const before = copies()
    const none = { ...env, ADMIN_MIRROR_CONFIG: workspace.file('none.yaml') }

    const { status } = spawnSync(
      process.execPath,
      [path.join(DEB, 'backup.js'), workspace.file('backups'), '1'],
      {
        env: none,
      },
    )

    expect(status).toBe(1)
    expect(copies()).toEqual(before)
  })

  it('that fails says so in a sentence, and leaves nothing of it', () => {
    const say = (folder: string, through: readonly string[] = []) => {
      const words = [...through, process.execPath, path.join(DEB, 'backup.js'), workspace.file(folder), '7']
      const { status, stderr } = spawnSync(words[0] ?? '', words.slice(1), { env, encoding: 'utf8' })
      expect(status).toBe(1)
      return stderr
    }
    fs.writeFileSync(workspace.file('a file'), '')
    const before = copies()

    expect(say('a file')).toMatch(/^no backup is made; \S+a file: EEXIST.*\n$/)
    // SQLite meets a limit on the size of files as a disk that cannot be written.
    expect(say('backups', ['prlimit', '--fsize=65536'])).toMatch(/^no backup is made; \S+mirror\.db: .+\n$/)
    expect(copies()).toEqual(before)
  })

  it('is restored: syncs go on in it, with history, runs and what was known of the API', async () => {
    const rows = workspace.value('SELECT count(*) FROM orders_history')
    backUp('1')
    const copy = copies().at(-1)
    for (const end of ['', '-wal', '-shm']) fs.rmSync(`${workspace.mirror}${end}`, { force: true })
    fs.renameSync(workspace.file(`backups/${copy}`), workspace.mirror)

    const { code, stderr } = await workspace.run(['rebuild'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const restored = new Database(workspace.mirror, { readonly: true })
    const one = (sql: string) => restored.prepare(sql).pluck().get()
    expect(one('SELECT count(*) FROM orders_history')).toBe(rows)
    expect(one("SELECT count(*) FROM sync_settings WHERE name = 'address'")).toBe(1)
    restored.close()
  })
})

function createUnread() {
  const workspace = createWorkspace({
    baseUrl: 'http://127.0.0.1:9',
    organizations: [organization('acme', 1)],
  })
  const told = workspace.file('told')
  fs.writeFileSync(workspace.file('notify'), `#!/bin/sh\n{ echo "code $1"; cat; } >> "${told}"\n`, {
    mode: 0o755,
  })
  const env = {
    ...process.env,
    ADMIN_MIRROR_CONFIG: workspace.file('admin-mirror.yaml'),
    PATH: `${commandIn(workspace)}:${process.env.PATH}`,
    NOTIFY: workspace.file('notify'),
    STATE_DIRECTORY: workspace.folder,
  }
  const look = () => spawnSync(path.join(DEB, 'check.sh'), { env }).status
  const codes = () =>
    fs.existsSync(told)
      ? [...fs.readFileSync(told, 'utf8').matchAll(/^code (\d+)$/gm)].map(([, code]) => code)
      : []
  return { workspace, look, codes, told }
}

describe('the check', () => {
  it('tells once that somebody has to act, and once that all is well again', () => {
    const { workspace, look, codes, told } = createUnread()

    look()
    look()
    const first = codes()
    // Nothing is configured any more, so nothing is late.
    fs.writeFileSync(workspace.file('bin/admin-mirror'), '#!/bin/sh\necho all is well\n', { mode: 0o755 })
    look()
    look()

    expect(first).toEqual(['1'])
    expect(fs.readFileSync(told, 'utf8')).toContain('never read')
    expect(codes()).toEqual(['1', '0'])
  })

  it('tells again where nobody could be told', () => {
    const { workspace, look, codes } = createUnread()
    const notify = fs.readFileSync(workspace.file('notify'))
    fs.writeFileSync(workspace.file('notify'), '#!/bin/sh\nexit 1\n')

    expect(look()).not.toBe(0)
    fs.writeFileSync(workspace.file('notify'), notify)
    look()

    expect(codes()).toEqual(['1'])
  })

  it.skipIf(!IS_ROOT || !runs('unshare', '--mount', 'true'))('tells once of a full disk (needs root)', () => {
    const { workspace, codes } = createUnread()
    const script = `set -eu
mkdir state && mount -t tmpfs -o size=64k none state
export PATH="$PWD/bin:$PATH" NOTIFY="$PWD/notify" STATE_DIRECTORY="$PWD/state"
printf '#!/bin/sh\nexit 0\n' > bin/admin-mirror
"$1"
cat /dev/zero > state/filler 2> /dev/null || true
if echo more > state/more 2> /dev/null; then exit 1; fi
for code in 4 130 4 0; do
  printf '#!/bin/sh\nexit %s\n' "$code" > bin/admin-mirror
  "$1"
  "$1"
done`

    execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', path.join(DEB, 'check.sh')], {
      cwd: workspace.folder,
    })

    expect(codes()).toEqual(['4', '130', '4', '0'])
  })
})
