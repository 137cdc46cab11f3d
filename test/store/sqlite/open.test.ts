import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError, MirrorUnavailableError } from '../../../src/errors.ts'
import { LATEST_VERSION } from '../../../src/store/schema.ts'
import { translate } from '../../../src/store/sqlite/errors.ts'
import { openForReading, openForWriting } from '../../../src/store/sqlite/open.ts'
import { CAN_BE_REFUSED, NOBODY, openElsewhere } from '../../helpers/other-process.ts'
import { IS_ROOT, mustRun } from '../../helpers/processes.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'

// What every command says of such a file: test/stories/mirror-file.test.ts.

const APPLICATION_ID = 0x61646d72

const newPlace = () => path.join(tempFolder(), 'mirror.db')

function open(file: string) {
  const connection = openForWriting(file)
  onTestFinished(() => void connection.close())
  return connection
}

/** A mirror with rows in it, closed. */
function makeMirror(file = newPlace()): string {
  const connection = openForWriting(file)
  const insert = connection.prepare('INSERT INTO sync_settings (name, value) VALUES (?, ?)')
  for (let number = 0; number < 500; number++) insert.run(`setting ${number}`, 'x'.repeat(200))
  connection.close()
  return file
}

/** The modes of a mirror and of the files beside it. */
const modesOf = (file: string) =>
  ['', '-wal', '-shm'].map((end) => (fs.statSync(file + end).mode & 0o777).toString(8))

describe('a mirror that does not exist yet', () => {
  it('is created, with its folder, for its owner alone; with our id, its schema version, and in WAL mode', () => {
    const file = path.join(tempFolder(), 'data', 'deeper', 'mirror.db')

    const connection = open(file)

    expect(connection.prepare('SELECT count(*) FROM sync_status').pluck().get()).toBe(0)
    expect(modesOf(file)).toEqual(['600', '600', '600'])
    const names = ['application_id', 'user_version', 'journal_mode']
    const found = names.map((name) => connection.pragma(name, { simple: true }))
    expect(found).toEqual([APPLICATION_ID, LATEST_VERSION, 'wal'])
  })

  it('can be created by several processes at once', async () => {
    const file = newPlace()

    expect(await Promise.all([1, 2, 3, 4].map(() => openElsewhere(file)))).toEqual(Array(4).fill('done'))
  })

  it('keeps the mode of an existing empty file, for the files beside it too', () => {
    const file = newPlace()
    fs.writeFileSync(file, '')
    fs.chmodSync(file, 0o664)

    open(file)

    expect(modesOf(file)).toEqual(['664', '664', '664'])
  })

  it('reads as null, also as a process leaves it that was killed while it made it, and is not made by reading', () => {
    const file = newPlace()
    expect(openForReading(file)).toBeNull()
    expect(fs.existsSync(file)).toBe(false)
    const begun = new Database(file)
    begun.pragma(`application_id = ${APPLICATION_ID}`)
    begun.close()

    expect(openForReading(file)).toBeNull()
    expect(open(file).prepare('SELECT count(*) FROM sync_status').pluck().get()).toBe(0)
  })
})

/** A database whose last change is in its WAL alone. */
function changeInWal(file: string, sql: string): void {
  const database = new Database(file)
  onTestFinished(() => void database.close())
  database.pragma('journal_mode = WAL')
  database.exec(sql)
}

function giveWalOfAnother(file: string): void {
  const other = newPlace()
  changeInWal(other, 'CREATE TABLE accounts (id)')
  fs.copyFileSync(`${other}-wal`, `${makeMirror(file)}-wal`)
}

function truncate(file: string): void {
  fs.truncateSync(makeMirror(file), Math.floor(fs.statSync(file).size / 8192) * 4096 + 1000)
}

function overwriteMiddle(file: string): void {
  const bytes = fs.readFileSync(makeMirror(file))
  fs.writeFileSync(file, bytes.fill('x', bytes.length / 2, bytes.length / 2 + 20_000))
}

const DAMAGED = /damaged.*Restore a copy, or move it away/s

it.each<[string, RegExp, (file: string) => void]>([
  ['a text', /no SQLite database.*another/, (file) => fs.writeFileSync(file, 'orders: none\n'.repeat(100))],
  ["somebody else's database", /something else/, (file) => changeInWal(file, 'CREATE TABLE accounts (id)')],
  [
    'a mirror of a newer version, as its WAL alone shows',
    /newer admin-mirror \(schema 999.*newer version/,
    (file) => changeInWal(makeMirror(file), 'PRAGMA user_version = 999'),
  ],
  [
    'a mirror with the WAL of another database',
    /-wal is the log of another database: move it away/,
    giveWalOfAnother,
  ],
  ['a truncated mirror', DAMAGED, truncate],
  ['a mirror that was overwritten in the middle', DAMAGED, overwriteMiddle],
])('a file that cannot be the mirror is refused and left as it is: %s', (_what, message, make) => {
  const file = newPlace()
  make(file)
  const files = [file, `${file}-wal`]
  const bytes = () => Buffer.concat(files.filter(fs.existsSync).map((name) => fs.readFileSync(name)))
  const before = bytes()

  // A reader meets the damage where it reads.
  for (const openIt of message === DAMAGED ? [openForWriting] : [openForWriting, openForReading]) {
    expect(() => openIt(file)).toThrow(MirrorError)
    expect(() => openIt(file)).toThrow(message)
    expect(() => openIt(file)).toThrow(file)
    expect(bytes().equals(before)).toBe(true)
  }
})

it('a pipe in the place of the mirror is refused without a wait', () => {
  const file = newPlace()
  mustRun('mkfifo', file)

  for (const openIt of [openForWriting, openForReading])
    expect(() => openIt(file)).toThrow(/a folder, a pipe or a device/)
})

it.runIf(CAN_BE_REFUSED).each<[what: string, name: string, isMade: boolean, mode: number]>([
  ['a new file in a read-only folder', 'mirror.db', false, 0o555],
  ['a new folder in one', 'data/mirror.db', false, 0o555],
  ['a read-only mirror', 'mirror.db', true, 0o777],
])(
  'what this user may not write is refused, and nothing is created beside it: %s',
  async (_what, name, isMade, mode) => {
    const folder = tempFolder()
    const file = path.join(folder, name)
    if (isMade) fs.chmodSync(makeMirror(file), 0o644)
    fs.chmodSync(folder, mode)
    const before = fs.readdirSync(folder)

    expect(await openElsewhere(file, 'write', NOBODY)).toMatch(
      /^MirrorError: .*cannot be (?:written|used).*this user needs to write/,
    )
    expect(fs.readdirSync(folder)).toEqual(before)
  },
)

it.each([
  ['SQLITE_FULL', MirrorUnavailableError, /^the disk with .* is full; make room/],
  ['ENOSPC', MirrorUnavailableError, /^the disk with .* is full; make room/],
  ['SQLITE_IOERR_SHMSIZE', MirrorUnavailableError, /^the disk with .* is full; make room/],
  ['SQLITE_BUSY', MirrorUnavailableError, /locked by another process for too long/],
  ['SQLITE_IOERR_SHMMAP', MirrorError, /its file system has no locks, or no memory that processes share/],
  ['SQLITE_IOERR_WRITE', MirrorError, /cannot be read or written .* look at the disk, and at limits/],
])('%s is told by its cause', (code, kind, message) => {
  const error = translate('/data/mirror.db', Object.assign(new Error('an error'), { code }))

  expect(error).toBeInstanceOf(kind)
  expect(error).toHaveProperty('message', expect.stringMatching(message))
})

it.runIf(IS_ROOT)("another user's mirror is not written by root, who is told how to run the command", () => {
  const file = makeMirror()
  fs.chownSync(file, 10_001, 10_001)

  expect(() => openForWriting(file)).toThrow(/runuser -u "\$\(id -nu 10001\)" --/)
  expect(fs.readdirSync(path.dirname(file))).toEqual(['mirror.db'])
})
