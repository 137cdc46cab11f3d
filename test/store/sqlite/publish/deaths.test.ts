import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { type HashedFile, hashFile, writeFreshness } from '../../../../src/store/sqlite/publish/numbers.ts'
import { makeCopy } from '../../../../src/store/sqlite/publish/publish.ts'
import { deathsIn } from '../../../helpers/deaths.ts'
import { watchEdges } from '../../../helpers/edges.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { lockName } from '../../../helpers/lock-name.ts'
import { IS_ROOT, mustRun, runs } from '../../../helpers/system.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

// What a process leaves that dies while it makes the published file, and what a full disk does to that.

const WHOLE = ['copy.db', 'copy.db.json']

function publishIn(folder: string) {
  return makeCopy(
    {
      mirror: path.join(folder, 'mirror.db'),
      target: path.join(folder, 'published/copy.db'),
      mode: 0o644,
      published: { version: '1', origin: null, contents: '', begunAt: 0 },
    },
    lockName(),
    Date.now,
  )
}

/** A mirror in a folder, published when it had one order; it has two now. */
async function createScene(folder = tempFolder()) {
  const test = openTestMirror({ file: path.join(folder, 'mirror.db') })
  const { saveItems } = await beginTestWalk(test, jobOf())
  await saveItems('{"id":1,"total":1}')
  publishIn(folder)
  await saveItems('{"id":2,"total":2,"customer_id":7}')
  test.close()
  return { folder, before: publishedIn(folder) }
}

interface Published {
  names: string[]
  copy: Buffer
  numbers: string
}

function publishedIn(folder: string): Published {
  const file = path.join(folder, 'published/copy.db')
  return {
    names: fs.readdirSync(path.dirname(file)).toSorted(),
    copy: fs.readFileSync(file),
    numbers: fs.readFileSync(`${file}.json`, 'utf8'),
  }
}

/** Both orders, the numbers of this file, and nothing beside them. */
function expectPublished(folder: string): void {
  const { names, copy, numbers } = publishedIn(folder)
  expect(names).toEqual(WHOLE)
  expect(JSON.parse(numbers)).toMatchObject({
    rows: { orders: 2 },
    sha256: createHash('sha256').update(copy).digest('hex'),
  })
  expect(idsIn(folder)).toEqual([1, 2])
}

/** As a reader finds them at this moment. */
function idsIn(folder: string): unknown[] {
  const connection = new Database(path.join(folder, 'published/copy.db'), { readonly: true })
  try {
    expect(connection.pragma('integrity_check', { simple: true })).toBe('ok')
    return connection.prepare('SELECT id FROM orders ORDER BY id').pluck().all()
  } finally {
    connection.close()
  }
}

it('shows the old copy or the new one wherever its process dies, and the next clears away what that left', async () => {
  const { folder, before } = await createScene()

  const { deaths } = await deathsIn(folder, () => publishIn(folder))

  expectPublished(folder)
  const shown = deaths.map((death) => {
    const left = tempFolder()
    death.leaveIn(left)
    const { copy, numbers } = publishedIn(left)
    const isOld = copy.equals(before.copy)
    if (isOld) expect(numbers, death.place).toBe(before.numbers)
    expect(idsIn(left), death.place).toEqual(isOld ? [1] : [1, 2])
    publishIn(left)
    expectPublished(left)
    return isOld
  })
  expect(shown.length).toBeGreaterThan(10)
  expect(shown.lastIndexOf(true)).toBeLessThan(shown.indexOf(false))
})

it('keeps numbers that are those of the file wherever the process dies that writes how fresh it is', async () => {
  const { folder, before } = await createScene()
  const file = path.join(folder, 'published/copy.db')
  const hashed = (await hashFile(file, new AbortController().signal)) as HashedFile
  const state = { contents: '', jobs: [] }

  const { result, deaths } = await deathsIn(folder, () =>
    writeFreshness(hashed, state, Date.now(), lockName()),
  )

  const found = deaths.map((death) => {
    const left = tempFolder()
    death.leaveIn(left)
    const { copy, numbers } = publishedIn(left)
    expect(copy.equals(before.copy)).toBe(true)
    expect(JSON.parse(numbers), death.place).toMatchObject({ sha256: hashed.sha256 })
    return numbers === before.numbers
  })
  expect([result, new Set(found)]).toEqual([true, new Set([true, false])])
  expect(publishedIn(folder).names).toEqual(WHOLE)
})

function canMount(): boolean {
  const folder = fs.mkdtempSync('/tmp/admin-mirror-mount-')
  const isMounted = runs('mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)
  if (isMounted) mustRun('umount', folder)
  fs.rmdirSync(folder)
  return isMounted
}

/** Its published file is on a disk of its own. */
async function createSmallDisk() {
  const folder = tempFolder()
  const disk = path.join(folder, 'published')
  fs.mkdirSync(disk)
  mustRun('mount', '-t', 'tmpfs', '-o', 'size=80m', 'tmpfs', disk)
  onTestFinished(() => mustRun('umount', disk))
  const scene = await createScene(folder)
  const filler = path.join(disk, 'filler')
  return { ...scene, disk, filler }
}

/** More than the room that is kept free for other things leaves. */
const FILLER = Buffer.alloc(18 * 1024 * 1024, 'x')

it.skipIf(!IS_ROOT || !canMount())(
  'stays as it is where its disk has no room (needs root, and a mount)',
  async () => {
    const { folder, before, filler } = await createSmallDisk()
    fs.writeFileSync(filler, FILLER)

    expect(() => publishIn(folder)).toThrow(/not enough room.*copy\.db.*make room/)

    expect(publishedIn(folder)).toEqual({ ...before, names: [...WHOLE, 'filler'] })
    fs.rmSync(filler)
    publishIn(folder)
    expectPublished(folder)
  },
)

it.skipIf(!IS_ROOT || !canMount())(
  'is replaced where what a killed process left fills its disk (needs root, and a mount)',
  async () => {
    const { folder, disk } = await createSmallDisk()
    const lock = '4711-0123456789ab'
    fs.writeFileSync(path.join(folder, 'mirror.db-owners', lock), '')
    fs.writeFileSync(path.join(disk, `.copy.db.${lock}.unfinished`), FILLER)

    publishIn(folder)

    expectPublished(folder)
  },
)

it.skipIf(!IS_ROOT || !canMount())(
  'stays as it is, with its numbers, where its disk is full in the middle of the work (needs root, and a mount)',
  async () => {
    const { folder, before, filler } = await createSmallDisk()
    const end = watchEdges({
      before({ what }) {
        if (!/^fs\.writeFileSync .*\.json\./.test(what)) return
        end()
        try {
          for (;;) fs.appendFileSync(filler, Buffer.alloc(4096))
        } catch {
          // That is how it ends.
        }
      },
    })
    onTestFinished(end)

    expect(() => publishIn(folder)).toThrow(/copy\.db.* full.*make room/)

    expect(publishedIn(folder)).toEqual({ ...before, names: [...WHOLE, 'filler'] })
    fs.rmSync(filler)
    publishIn(folder)
    expectPublished(folder)
  },
)
