import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError, MirrorUnavailableError } from '../../../src/errors.ts'
import { LATEST_VERSION } from '../../../src/store/schema.ts'
import type { Connection } from '../../../src/store/sqlite/driver.ts'
import { translate } from '../../../src/store/sqlite/errors.ts'
import { openForReading, openForWriting } from '../../../src/store/sqlite/open.ts'
import { CAN_BE_REFUSED, openAsNobody, openInProcesses } from '../../helpers/other-process.ts'
import { IS_ROOT, mustRun } from '../../helpers/processes.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'

const APPLICATION_ID = 0x61646d72

function open(file: string): Connection {
  const connection = openForWriting(file)
  onTestFinished(() => {
    connection.close()
  })
  return connection
}

/** A mirror with a row in it, closed. */
function makeMirror(file = path.join(tempFolder(), 'mirror.db')): string {
  const connection = openForWriting(file)
  const insert = connection.prepare('INSERT INTO sync_settings (name, value) VALUES (?, ?)')
  for (let number = 0; number < 500; number++) insert.run(`setting ${number}`, 'x'.repeat(200))
  connection.close()
  return file
}

function settingsIn(connection: Connection): unknown {
  return connection.prepare('SELECT count(*) FROM sync_settings').pluck().get()
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

function modeOf(file: string): string {
  return (fs.statSync(file).mode & 0o777).toString(8)
}

function pragma(connection: Connection, name: string): unknown {
  return connection.pragma(name, { simple: true })
}

describe('a mirror that does not exist yet', () => {
  it('is created, with its folder, readable by its owner only; with our id, its schema version, and in WAL mode', () => {
    const file = path.join(tempFolder(), 'data', 'deeper', 'mirror.db')

    const connection = open(file)

    expect(connection.prepare('SELECT count(*) FROM sync_status').pluck().get()).toBe(0)
    expect(['', '-wal', '-shm'].map((suffix) => modeOf(file + suffix))).toEqual(['600', '600', '600'])
    const names = ['application_id', 'user_version', 'journal_mode']
    expect(names.map((name) => pragma(connection, name))).toEqual([APPLICATION_ID, LATEST_VERSION, 'wal'])
  })

  it('can be created by several processes at once', async () => {
    const file = path.join(tempFolder(), 'mirror.db')

    const outcomes = await openInProcesses(file, 4)

    expect(outcomes).toEqual(['opened', 'opened', 'opened', 'opened'])
  })

  it('keeps the mode of an existing empty file, for the files beside it too', () => {
    const file = path.join(tempFolder(), 'mirror.db')
    fs.writeFileSync(file, '')
    fs.chmodSync(file, 0o664)

    open(file)

    expect(['', '-wal', '-shm'].map((suffix) => modeOf(file + suffix))).toEqual(['664', '664', '664'])
  })

  it('reads as null, and is not created by reading', () => {
    const file = path.join(tempFolder(), 'mirror.db')

    expect(openForReading(file)).toBeNull()
    expect(fs.existsSync(file)).toBe(false)
  })
})

describe('a mirror that exists', () => {
  it('opens after a process was killed while creating it', () => {
    const file = path.join(tempFolder(), 'mirror.db')
    const begun = new Database(file)
    begun.pragma(`application_id = ${APPLICATION_ID}`)
    begun.close()

    expect(openForReading(file)).toBeNull()
    expect(open(file).prepare('SELECT count(*) FROM sync_status').pluck().get()).toBe(0)
  })
})

describe('a file that was left beside a mirror', () => {
  it.each(['-wal', '-shm', '-journal'])('does no harm if it is rubbish: %s', (suffix) => {
    const file = makeMirror()
    fs.writeFileSync(file + suffix, 'rubbish '.repeat(2000))

    const connection = open(file)

    expect(settingsIn(connection)).toBe(500)
    expect(pragma(connection, 'integrity_check')).toBe('ok')
  })

  it('is rolled back: an interrupted transaction of a mirror outside WAL mode', () => {
    const file = makeMirror()
    const killed = open(file)
    killed.pragma('journal_mode = DELETE')
    // Without a cache, changed database pages go into the file at once.
    killed.pragma('cache_size = 1')
    killed.exec('BEGIN IMMEDIATE; DELETE FROM sync_settings')
    const broken = copyOf(file, '', '-journal')

    const connection = open(broken)

    expect(fs.readFileSync(broken).equals(fs.readFileSync(file))).toBe(false)
    expect(settingsIn(connection)).toBe(500)
    expect(pragma(connection, 'integrity_check')).toBe('ok')
  })

  it('is left as it is, with the mirror, if it is the WAL of another database', () => {
    const other = new Database(path.join(tempFolder(), 'other.db'))
    onTestFinished(() => {
      other.close()
    })
    other.pragma('journal_mode = WAL')
    other.exec('CREATE TABLE accounts (id INTEGER)')
    const file = makeMirror()
    fs.copyFileSync(`${other.name}-wal`, `${file}-wal`)
    const before = [fs.readFileSync(file), fs.readFileSync(`${file}-wal`)]

    const errors = [errorOf(() => openForWriting(file)), errorOf(() => openForReading(file))]

    for (const { message } of errors)
      expect(message).toMatch(/the write-ahead log beside it .* is another database's.*Move the log away/)
    expect(before[0]?.equals(fs.readFileSync(file))).toBe(true)
    expect(before[1]?.equals(fs.readFileSync(`${file}-wal`))).toBe(true)
  })
})

/** A copy of the file and of those beside it, as a process that is killed now leaves them. */
function copyOf(file: string, ...suffixes: string[]): string {
  const copy = path.join(tempFolder(), 'copy.db')
  for (const suffix of suffixes) fs.copyFileSync(file + suffix, copy + suffix)
  return copy
}

const DAMAGED = /damaged.*Restore a copy, or move it away/s

/** What may be in place of the mirror, and the message about it. */
const UNUSABLE: [string, (file: string) => void, RegExp][] = [
  [
    'a text',
    (file) => fs.writeFileSync(file, 'orders: none\n'.repeat(100)),
    /no SQLite database.*another file/,
  ],
  ['a short text', (file) => fs.writeFileSync(file, 'x'), /no SQLite database.*another file/],
  ["somebody else's database", makeForeign, /something else.*another file/],
  ["somebody else's database in WAL mode", makeForeignInWal, /something else.*another file/],
  ['a mirror of a newer version', makeNewer, /newer admin-mirror \(schema 999.*newer version/],
  ['a truncated mirror', truncateMirror, DAMAGED],
  ['a mirror that was overwritten in the middle', overwriteMirror, DAMAGED],
  ['a damaged mirror that is not in WAL mode', overwriteSnapshot, DAMAGED],
]

function makeForeign(file: string): void {
  new Database(file).exec('CREATE TABLE accounts (id INTEGER)').close()
}

function makeForeignInWal(file: string): void {
  const database = new Database(file)
  database.pragma('journal_mode = WAL')
  database.exec('CREATE TABLE accounts (id INTEGER)').close()
}

function makeNewer(file: string): void {
  makeMirror(file)
  const database = new Database(file)
  database.pragma('user_version = 999')
  database.close()
}

function truncateMirror(file: string): void {
  makeMirror(file)
  fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2 / 4096) * 4096 + 1000)
}

function overwriteMirror(file: string): void {
  makeMirror(file)
  overwrite(file, Math.floor(fs.statSync(file).size / 2), 20_000)
}

function overwriteSnapshot(file: string): void {
  overwriteMirror(file)
  const handle = fs.openSync(file, 'r+')
  // The two bytes of the header that say whether there is a WAL.
  fs.writeSync(handle, Buffer.from([1, 1]), 0, 2, 18)
  fs.closeSync(handle)
}

function overwrite(file: string, from: number, length: number): void {
  const handle = fs.openSync(file, 'r+')
  fs.writeSync(handle, Buffer.alloc(length, 'x'), 0, length, from)
  fs.closeSync(handle)
}

describe('a file that cannot be the mirror', () => {
  it.each(UNUSABLE)('is refused and left as it is: %s', (_what, make, message) => {
    const file = path.join(tempFolder(), 'mirror.db')
    make(file)
    const before = fs.readFileSync(file)

    // A reader meets the damage where it reads.
    for (const openIt of message === DAMAGED ? [openForWriting] : [openForWriting, openForReading]) {
      const error = errorOf(() => openIt(file))
      expect(error.code).toBe('DATABASE')
      expect(error.message).toMatch(message)
      expect(error.message).toContain(file)
      expect(fs.readFileSync(file).equals(before)).toBe(true)
    }
  })

  it('is refused if only the WAL shows that its version is newer', () => {
    const file = makeMirror()
    const newer = new Database(file)
    onTestFinished(() => {
      newer.close()
    })
    newer.pragma('user_version = 999')
    const before = fs.readFileSync(file)

    expect(errorOf(() => openForWriting(file)).message).toMatch(/newer version/)
    expect(errorOf(() => openForReading(file)).message).toMatch(/newer version/)
    expect(fs.readFileSync(file).equals(before)).toBe(true)
  })

  it.each(['a pipe', '/dev/zero'])('is refused without a wait if it is %s', (what) => {
    const file = path.join(tempFolder(), 'mirror.db')
    if (what === 'a pipe') mustRun('mkfifo', file)
    else fs.symlinkSync(what, file)

    for (const openIt of [openForWriting, openForReading])
      expect(errorOf(() => openIt(file)).message).toMatch(
        /is a pipe or a device, where a regular file should be/,
      )
  })
})

describe.runIf(CAN_BE_REFUSED)('a place that this user may not write to', () => {
  it.each<[string, (folder: string) => string]>([
    ['a new file', (folder) => path.join(folder, 'mirror.db')],
    ['a new folder', (folder) => path.join(folder, 'data', 'mirror.db')],
    ['a mirror', (folder) => makeMirror(path.join(folder, 'mirror.db'))],
  ])('is refused: %s in a read-only folder', (_what, place) => {
    const folder = tempFolder()
    const file = place(folder)
    fs.chmodSync(folder, 0o555)
    const before = fs.readdirSync(folder)

    const outcome = openAsNobody(file)

    expect(outcome).toMatch(/^MirrorError: .*cannot be (?:written|used).*this user needs to write/)
    expect(fs.readdirSync(folder)).toEqual(before)
  })

  it('is refused: a read-only mirror, and nothing is created beside it', () => {
    const file = makeMirror()
    fs.chmodSync(file, 0o644)
    fs.chmodSync(path.dirname(file), 0o777)

    const outcome = openAsNobody(file)

    expect(outcome).toMatch(/^MirrorError: .*cannot be written.*this user needs to write to the file/)
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

it.runIf(IS_ROOT)(
  "another user's mirror is not written by root, who is told how to run the command as that user",
  () => {
    const file = makeMirror()
    fs.chownSync(file, 10_001, 10_001)

    expect(errorOf(() => openForWriting(file)).message).toMatch(/runuser -u "\$\(id -nu 10001\)" --/)
    expect(fs.readdirSync(path.dirname(file))).toEqual(['mirror.db'])
  },
)
