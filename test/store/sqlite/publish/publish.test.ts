import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { createFilePublishing } from '../../../../src/cli/file/open.ts'
import { freshnessOf } from '../../../../src/store/core/publication.ts'
import { leasesFolder } from '../../../../src/store/sqlite/file/lock-file.ts'
import { assertOwnCopy, type Numbers, originOf } from '../../../../src/store/sqlite/publish/numbers.ts'
import {
  inspectPlace,
  makeUnfinished,
  numbersFile,
  sweepUnfinished,
} from '../../../../src/store/sqlite/publish/place.ts'
import { makeCopy, startCopy } from '../../../../src/store/sqlite/publish/publish.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { ownChildren } from '../../../helpers/processes.ts'
import { IS_ROOT } from '../../../helpers/system.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'
import { beginTestWalk, complete, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const HOUR_MS = 3_600_000

const ours = originOf('/our/mirror.db', { salt: 'ours', since: 0 })

/** A copy that a mirror has published now. */
function publishedBy(mirror: typeof ours): string {
  const { file } = openTestMirror()
  const target = path.join(tempFolder(), 'copy.db')
  makeCopy(
    {
      mirror: file,
      target,
      mode: 0o644,
      published: { version: '1', origin: mirror, contents: '', begunAt: 0 },
    },
    '12345-0123456789ab',
    Date.now,
  )
  return target
}

/** Whether a mirror may replace this copy. */
function mayReplace(target: string, mirror: typeof ours): boolean {
  try {
    assertOwnCopy(target, inspectPlace(target), mirror)
    return true
  } catch (error) {
    expect(String(error)).toMatch(
      /copy\.db is the copy of another mirror, made at 20\S+Z, so .* Give each configuration a "publish" of its own\. If .* delete .*copy\.db$/,
    )
    return false
  }
}

describe('a published file', () => {
  it.each<[what: string, mirror: typeof ours, isOwn: boolean]>([
    ['by the mirror that made it', ours, true],
    ['by that mirror, moved or restored elsewhere', { ...ours, place: 'elsewhere' }, true],
    ['by another mirror', originOf('/their/mirror.db', { salt: 'theirs', since: 0 }), false],
    [
      'by one made anew where that one stood, and filled since',
      { ...ours, id: 'new', since: Date.now() + HOUR_MS },
      true,
    ],
    ['by one made anew there that is empty', { ...ours, id: 'new', since: null }, true],
    [
      'by one that stood there before it was made',
      { ...ours, id: 'other', since: Date.now() - HOUR_MS },
      false,
    ],
  ])('is replaced or kept: %s', (_what, mirror, isOwn) => {
    expect(mayReplace(publishedBy(ours), mirror)).toBe(isOwn)
  })

  it.each<[what: string, change: (target: string) => void]>([
    ['once it has been deleted', (target) => fs.rmSync(target)],
    [
      'where its numbers name no mirror, as an earlier version wrote them',
      (target) => {
        const { mirror: _, ...former } = JSON.parse(fs.readFileSync(numbersFile(target), 'utf8')) as Numbers
        fs.writeFileSync(numbersFile(target), JSON.stringify(former))
      },
    ],
  ])('is replaced by any mirror %s', (_what, change) => {
    const target = publishedBy(ours)
    change(target)

    expect(mayReplace(target, originOf('/their/mirror.db', { salt: 'theirs', since: 0 }))).toBe(true)
  })
})

const LOCK = '12345-0123456789ab'

it('leaves the copy that another mirror has published while ours was made', () => {
  const { file: mirror } = openTestMirror()
  const [folder, elsewhere] = [tempFolder(), tempFolder()]
  const publish = (at: string, id: string, now = Date.now) =>
    makeCopy(
      {
        mirror,
        target: path.join(at, 'copy.db'),
        mode: 0o644,
        published: { version: '1', origin: { id, place: id, since: null }, contents: '', begunAt: 0 },
      },
      LOCK,
      now,
    )
  publish(elsewhere, 'theirs')
  const numbers = () =>
    JSON.parse(fs.readFileSync(path.join(folder, path.basename(numbersFile('copy.db'))), 'utf8')) as object
  /** The first look at the place is over then, and the second is not. */
  const whileMade = () => {
    fs.cpSync(elsewhere, folder, { recursive: true })
    return Date.now()
  }

  expect(() => publish(folder, 'ours', whileMade)).toThrow(/copy of another mirror/)

  expect(numbers()).toMatchObject({ mirror: { id: 'theirs' } })
})

it('names the mirror where that is damaged, not the file of the copy', async () => {
  const { connection, file } = openTestMirror()
  const mirror = path.join(tempFolder(), 'mirror.db')
  connection.prepare('VACUUM INTO ?').run(mirror)
  const damaged = fs.readFileSync(mirror).fill(0xff, 8192)
  fs.writeFileSync(mirror, damaged)
  const target = path.join(path.dirname(file), 'copy.db')

  expect(() => makeCopy({ mirror, target, mode: null, published: null }, LOCK, Date.now)).toThrow(
    `${mirror} is damaged`,
  )
})

it.skipIf(!IS_ROOT)(
  'sweeps what a killed process of ours left, and nothing of another user (needs root)',
  () => {
    const { file: mirror } = openTestMirror()
    const folder = tempFolder()
    const left = (lock: string, uid: number) => {
      const at = path.join(folder, `.copy.db.${lock}.unfinished`)
      fs.writeFileSync(at, 'half')
      fs.chownSync(at, uid, uid)
      fs.utimesSync(at, 0, 0)
      return at
    }
    const files = [left('1-0123456789ab', 0), left('2-0123456789ab', 65_534), left('3-0123456789ab', 65_534)]
    // The locks of both dead processes are free.
    for (const lock of ['1-0123456789ab', '3-0123456789ab'])
      fs.writeFileSync(path.join(leasesFolder(mirror), lock), '')
    const own = path.join(folder, 'own')
    fs.writeFileSync(own, '')

    sweepUnfinished({ folder: leasesFolder(mirror) }, path.join(folder, 'copy.db'), fs.lstatSync(own))

    expect(files.map((file) => fs.existsSync(file))).toEqual([false, true, true])
  },
)

it('tells how fresh lists are in one order, whatever the order in which a database has them', () => {
  const told = ['b', 'a', 'c'].map((organization) => ({ organization, collection: 'orders' }))

  expect(freshnessOf(told).map(({ organization }) => organization)).toEqual(['a', 'b', 'c'])
})

// What makes the published file anew, and what only its numbers.

/** A mirror of one order, read whole. */
async function createWalked() {
  const mirror = openTestMirror()
  const { save: _, ...walk } = await beginTestWalk(mirror, jobOf())
  await walk.saveItems('{"id":1,"total":1}')
  await complete(mirror, jobOf(), walk.walk)
  const { state } = createFilePublishing(mirror.connection, mirror.file, { pid: 1, randomHex: () => '' })
  return { mirror, walk, state }
}

const sql = (text: string) => (mirror: TestMirror) => void mirror.connection.exec(text)

it.each<[string, (mirror: TestMirror, walk: Awaited<ReturnType<typeof createWalked>>['walk']) => unknown]>([
  ['a row', (_mirror, { saveItems }) => saveItems('{"id":2,"total":1}')],
  ['a value', (_mirror, { saveItems }) => saveItems('{"id":1,"total":2}')],
  ['an item without a key', (_mirror, { saveItems }) => saveItems('{"total":2}')],
  ['coverage', sql("UPDATE sync_walks SET coverage = 'repaired'")],
  ['how many rows are held back', sql('UPDATE sync_jobs SET removals_held = 1')],
  ['the name of an organization', sql("UPDATE organizations SET name = 'renamed' WHERE name = 'acme'")],
  ['that an organization is not configured', sql('UPDATE organizations SET configured = 0')],
  ['what was counted of a column', sql('UPDATE sync_column_counts SET filled = filled + 1')],
  ['rows that were forgotten', sql('UPDATE sync_jobs SET rows = 0')],
])('%s changes the contents', async (_what, change) => {
  const { mirror, walk, state } = await createWalked()
  const { contents } = await state()

  await change(mirror, walk)

  expect((await state()).contents).not.toBe(contents)
})

it.each<[string, (mirror: TestMirror, walk: Awaited<ReturnType<typeof createWalked>>['walk']) => unknown]>([
  ['a page without changes', (_mirror, { saveItems }) => saveItems('{"id":1,"total":1}')],
  ['a later walk', async (mirror) => complete(mirror, jobOf(), (await beginTestWalk(mirror, jobOf())).walk)],
  ['a refresh', sql("UPDATE sync_jobs SET fresh_as_of = '2099-01-01T00:00:00.000Z'")],
  ['a run that failed', sql("UPDATE sync_runs SET status = 'failed', error_code = 'NETWORK'")],
  ['a token that is held', sql("UPDATE organizations SET held_since = '2026-01-01T00:00:00.000Z'")],
])('%s leaves the contents as they were', async (_what, change) => {
  const { mirror, walk, state } = await createWalked()
  const { contents } = await state()

  await change(mirror, walk)

  expect((await state()).contents).toBe(contents)
})

it('tells how fresh lists are in one order, whatever the order in which a database has them', () => {
  const told = ['b', 'a', 'c'].map((organization) => ({ organization, collection: 'orders' }))

  expect(freshnessOf(told).map(({ organization }) => organization)).toEqual(['a', 'b', 'c'])
})

it.each<[how: string, end: (stop: AbortController, child: number) => void, name: string, message: RegExp]>([
  ['on the signal to stop', (stop) => stop.abort(), 'InterruptedError', /nothing has changed$/],
  [
    'by somebody else',
    (_stop, child) => process.kill(child, 'SIGKILL'),
    'MirrorError',
    /was ended \(SIGKILL\), and nothing has changed; run the command again$/,
  ],
])(
  'leaves nothing but the older copy where the process that makes a new one is killed %s',
  async (_how, end, name, message) => {
    const { file: mirror } = openTestMirror()
    const target = path.join(tempFolder(), 'copy.db')
    const task = { mirror, target, mode: 0o644, published: null }
    makeCopy(task, LOCK, Date.now)
    const folders = [path.dirname(target), leasesFolder(mirror)]
    const found = () => [fs.readFileSync(target), ...folders.map((folder) => fs.readdirSync(folder))]
    const before = found()
    // What the process has when it copies.
    makeUnfinished(target, LOCK, 0o600)
    fs.writeFileSync(path.join(leasesFolder(mirror), LOCK), '')
    const stop = new AbortController()

    const copying = startCopy(task, LOCK, stop.signal)
    const [child = 0] = ownChildren('publish-child')
    // Nobody else is killed: 0 would be all processes of the group.
    expect(child).toBeGreaterThan(0)
    end(stop, child)

    await expect(copying).rejects.toMatchObject({ name, message: expect.stringMatching(message) })
    expect(found()).toEqual(before)
  },
)
