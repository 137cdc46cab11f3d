import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorLostError } from '../../../src/errors.ts'
import { leasesFolder } from '../../../src/store/sqlite/file/lock-file.ts'
import { openForWriting } from '../../../src/store/sqlite/file/open-for-writing.ts'
import { createLeases, isOwnerAlive, type Leases } from '../../../src/store/sqlite/leases.ts'
import { ACME } from '../../helpers/jobs.ts'
import { mustRun } from '../../helpers/system.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

const HOUR_MS = 3_600_000

const ORDERS = { organization: ACME.id, collection: 'orders' }

const [FIRST, SECOND, THIRD] = ['1-aaaaaaaaaaaa', '2-bbbbbbbbbbbb', '3-cccccccccccc']
const KILLED = '4-dddddddddddd'

// Within one process SQLite itself keeps the locks of different connections apart, as it does between
// processes.
function leasesOf({ connection }: Pick<TestMirror, 'connection'>, name: string, now = Date.now): Leases {
  const leases = createLeases(connection, name, now)
  onTestFinished(() => leases.close())
  return leases
}

const muchLater = () => Date.now() + 2 * HOUR_MS

describe('the owner of a job', () => {
  it('loses the job with its process', () => {
    const test = openTestMirror()
    const first = createLeases(test.connection, FIRST, Date.now)
    first.take(ORDERS)

    first.close()

    expect(leasesOf(test, SECOND).take(ORDERS)).toBeNull()
  })

  it('can take a job again that it could not release in the mirror', () => {
    const test = openTestMirror()
    const leases = leasesOf(test, FIRST)
    leases.take(ORDERS)
    test.connection.exec(
      "CREATE TRIGGER full BEFORE UPDATE ON sync_jobs BEGIN SELECT RAISE(FAIL, 'full'); END",
    )
    expect(() => leases.release(ORDERS)).toThrow('full')
    test.connection.exec('DROP TRIGGER full')

    expect(leases.take(ORDERS)).toBeNull()
  })

  it('releases only its own jobs', () => {
    const test = openTestMirror()
    const first = leasesOf(test, FIRST)
    const second = leasesOf(test, SECOND)
    second.take(ORDERS)

    first.release(ORDERS)

    expect(first.take(ORDERS)).toBe(SECOND)
  })

  it('is the same through any link to the mirror', () => {
    const test = openTestMirror()
    const link = path.join(path.dirname(test.file), 'link.db')
    fs.symlinkSync(test.file, link)
    leasesOf(test, FIRST).take(ORDERS)

    const connection = openForWriting(link)
    onTestFinished(() => void connection.close())
    const other = leasesOf({ connection }, SECOND)

    expect(other.take(ORDERS)).toBe(FIRST)
  })

  it.each<[string, (lock: string) => void]>([
    ['deleted', (lock) => fs.unlinkSync(lock)],
    [
      'replaced',
      (lock) => {
        // Beside the old one, so that the new one cannot get the number of its inode.
        fs.writeFileSync(`${lock}.new`, '')
        fs.renameSync(`${lock}.new`, lock)
      },
    ],
    ['written to', (lock) => fs.appendFileSync(lock, 'note')],
  ])('loses its jobs if its lock file was %s', (_what, change) => {
    const test = openTestMirror()
    const leases = leasesOf(test, FIRST)
    expect(() => leases.assertAlive()).not.toThrow()

    change(path.join(leasesFolder(test.file), FIRST))

    expect(() => leases.assertAlive()).toThrow(MirrorLostError)
  })
})

describe('the lock files of processes that were killed', () => {
  it('are deleted by a later one, those of living processes and young ones are not', () => {
    const test = openTestMirror()
    leasesOf(test, FIRST)
    const folder = leasesFolder(test.file)
    // As a killed process leaves them.
    fs.writeFileSync(path.join(folder, KILLED), '')
    fs.copyFileSync(path.join(folder, `${FIRST}-journal`), path.join(folder, `${KILLED}-journal`))

    leasesOf(test, SECOND)
    const soonAfter = fs.readdirSync(folder)
    leasesOf(test, THIRD, muchLater)

    expect(soonAfter).toEqual(expect.arrayContaining([FIRST, KILLED, SECOND]))
    expect(fs.readdirSync(folder).filter((name) => name.startsWith(KILLED))).toEqual([])
    expect(fs.readdirSync(folder)).toEqual(expect.arrayContaining([FIRST, SECOND, THIRD]))
  })
})

/** What may be among the lock files, or have the name of one. */
const STRAYS: [string, (file: string) => void][] = [
  ['a text', (file) => fs.writeFileSync(file, 'a note\n')],
  ['an empty file', (file) => fs.writeFileSync(file, '')],
  ['a folder', (file) => fs.mkdirSync(file)],
  ['a pipe', (file) => mustRun('mkfifo', file)],
  ['a link that leads nowhere', (file) => fs.symlinkSync('nowhere', file)],
]

describe('a file that is not our lock file', () => {
  it.each(STRAYS)('is ignored: %s', (_what, make) => {
    const test = openTestMirror()
    make(path.join(leasesFolder(test.file), 'README'))

    leasesOf(test, FIRST, muchLater).take(ORDERS)

    expect(fs.readdirSync(leasesFolder(test.file))).toContain('README')
  })

  it.each(STRAYS.filter(([what]) => what !== 'an empty file'))(
    'is ignored: %s with the name of a lock file',
    (_what, make) => {
      const test = openTestMirror()
      make(path.join(leasesFolder(test.file), KILLED))
      test.connection.exec(`UPDATE sync_jobs SET owner = '${KILLED}'`)

      const claim = leasesOf(test, FIRST, muchLater).take(ORDERS)

      expect(claim).toBeNull()
      expect(isOwnerAlive(test.file, KILLED)).toBe(false)
      expect(fs.readdirSync(leasesFolder(test.file))).toContain(KILLED)
    },
  )

  it.each(['../other.db', '/etc/passwd', '.', '', 'README', `${KILLED}/../README`, `${KILLED}-journal`])(
    'is neither opened nor deleted if the mirror names it as the owner of a job: %s',
    (owner) => {
      const test = openTestMirror()
      const others = [
        path.join(path.dirname(test.file), 'other.db'),
        path.join(leasesFolder(test.file), 'README'),
      ]
      for (const other of others) fs.writeFileSync(other, '')
      test.connection.prepare('UPDATE sync_jobs SET owner = ?').run(owner)
      const leases = leasesOf(test, FIRST)

      expect(isOwnerAlive(test.file, owner)).toBe(false)
      expect(leases.take(ORDERS)).toBeNull()
      for (const other of others) expect(fs.existsSync(other)).toBe(true)
    },
  )
})
