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

function errorOf(task: () => unknown): MirrorError {
  try {
    task()
  } catch (error) {
    if (error instanceof MirrorError) return error
    throw error
  }
  throw new Error('it was opened')
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
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => openElsewhere(file)))

    expect(outcomes).toEqual(['opened', 'opened', 'opened', 'opened'])
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

function overwrite(file: string, from: number, bytes: Buffer): void {
  const handle = fs.openSync(file, 'r+')
  fs.writeSync(handle, bytes, 0, bytes.length, from)
  fs.closeSync(handle)
}

const DAMAGED = /damaged.*Restore a copy, or move it away/s

/** What may be in place of the mirror, and the message about it. */
const UNUSABLE: [string, (file: string) => void, RegExp][] = [
  ['a text', (file) => fs.writeFileSync(file, 'orders: none\n'.repeat(100)), /no SQLite database.*another/],
  ["somebody else's database", (file) => changeInWal(file, 'CREATE TABLE accounts (id)'), /something else/],
  [
    'a mirror of a newer version, as its WAL alone shows',
    (file) => changeInWal(makeMirror(file), 'PRAGMA user_version = 999'),
    /newer admin-mirror \(schema 999.*newer version/,
  ],
  [
    'a mirror with the WAL of another database',
    (file) => {
      const other = path.join(tempFolder(), 'other.db')
      changeInWal(other, 'CREATE TABLE accounts (id)')
      fs.copyFileSync(`${other}-wal`, `${makeMirror(file)}-wal`)
    },
    /the write-ahead log beside it .* is another database's.*Move the log away/,
  ],
  [
    'a truncated mirror',
    (file) => fs.truncateSync(makeMirror(file), Math.floor(fs.statSync(file).size / 8192) * 4096 + 1000),
    DAMAGED,
  ],
  [
    'a mirror that was overwritten in the middle',
    (file) => overwrite(makeMirror(file), Math.floor(fs.statSync(file).size / 2), Buffer.alloc(20_000, 'x')),
    DAMAGED,
  ],
]

describe('a file that cannot be the mirror', () => {
  it.each(UNUSABLE)('is refused and left as it is: %s', (_what, make, message) => {
    const file = newPlace()
    make(file)
    const files = [file, `${file}-wal`]
    const bytes = () => Buffer.concat(files.filter(fs.existsSync).map((name) => fs.readFileSync(name)))
    const before = bytes()

    // A reader meets the damage where it reads.
    for (const openIt of message === DAMAGED ? [openForWriting] : [openForWriting, openForReading]) {
      const error = errorOf(() => openIt(file))
      expect(error.code).toBe('DATABASE')
      expect(error.message).toMatch(message)
      expect(error.message).toContain(file)
      expect(bytes().equals(before)).toBe(true)
    }
  })

  it.each(['a pipe', '/dev/zero'])('is refused without a wait if it is %s', (what) => {
    const file = newPlace()
    if (what === 'a pipe') mustRun('mkfifo', file)
    else fs.symlinkSync(what, file)

    for (const openIt of [openForWriting, openForReading])
      expect(errorOf(() => openIt(file)).message).toMatch(/is a pipe or a device, where a regular file/)
  })
})

describe.runIf(CAN_BE_REFUSED)('a place that this user may not write to', () => {
  it.each<[string, string, boolean]>([
    ['a new file', 'mirror.db', false],
    ['a new folder', 'data/mirror.db', false],
    ['a mirror', 'mirror.db', true],
  ])('is refused: %s in a read-only folder', async (_what, name, isMade) => {
    const folder = tempFolder()
    const file = path.join(folder, name)
    if (isMade) makeMirror(file)
    fs.chmodSync(folder, 0o555)
    const before = fs.readdirSync(folder)

    expect(await openElsewhere(file, NOBODY)).toMatch(
      /^MirrorError: .*cannot be (?:written|used).*this user needs to write/,
    )
    expect(fs.readdirSync(folder)).toEqual(before)
  })

  it('is refused: a read-only mirror, and nothing is created beside it', async () => {
    const file = makeMirror()
    fs.chmodSync(file, 0o644)
    fs.chmodSync(path.dirname(file), 0o777)

    expect(await openElsewhere(file, NOBODY)).toMatch(
      /^MirrorError: .*cannot be written.*this user needs to write to the/,
    )
    expect(fs.readdirSync(path.dirname(file))).toEqual(['mirror.db'])
  })
})

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

  expect(errorOf(() => openForWriting(file)).message).toMatch(/runuser -u "\$\(id -nu 10001\)" --/)
  expect(fs.readdirSync(path.dirname(file))).toEqual(['mirror.db'])
})
