import fs from 'node:fs'
import { MirrorError } from '../../../errors.ts'

export type Header =
  | { kind: 'absent' }
  | { kind: 'empty' }
  | { kind: 'other' }
  | { kind: 'sqlite'; applicationId: number; userVersion: number; isInWal: boolean }

const MAGIC = 'SQLite format 3\0'

/**
 * What a file is by its first 100 bytes (https://sqlite.org/fileformat.html#the_database_header), without
 * SQLite, which could roll back the journal of a database that is not ours. Call it before this process opens
 * the file: closing any handle of it drops SQLite's locks. Throws MirrorError unless it is a plain file.
 */
export function inspectHeader(file: string): Header {
  if (!assertPlainFiles(file)) return { kind: 'absent' }
  const bytes = readStart(file)
  if (bytes.length === 0) return { kind: 'empty' }
  if (bytes.length < 100 || bytes.toString('latin1', 0, 16) !== MAGIC) return { kind: 'other' }
  return {
    kind: 'sqlite',
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
    isInWal: bytes[18] === 2,
  }
}

function readStart(file: string): Buffer {
  // O_NONBLOCK: if a pipe has just replaced the file, this does not wait for a writer.
  const handle = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const bytes = Buffer.alloc(100)
    return bytes.subarray(0, fs.readSync(handle, bytes, 0, 100, 0))
  } finally {
    fs.closeSync(handle)
  }
}

/** What SQLite keeps beside a database. */
const BESIDE = ['-wal', '-shm', '-journal']

/**
 * Returns whether the file exists. Throws MirrorError unless it, and what SQLite keeps beside it, are regular
 * files with one name each: reading a pipe may never end, and a second name gets a second write-ahead log.
 * Follows links to the mirror, as SQLite does, but none to the files beside it.
 */
function assertPlainFiles(file: string): boolean {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (stat) assertPlain(file, stat)
  const real = stat ? fs.realpathSync(file) : file
  for (const suffix of BESIDE) {
    const beside = fs.lstatSync(real + suffix, { throwIfNoEntry: false })
    if (beside) assertPlain(real + suffix, beside)
  }
  return stat !== undefined
}

function assertPlain(file: string, stat: fs.Stats): void {
  if (!stat.isFile()) {
    throw new MirrorError(
      `${file} is ${kindOf(stat)}, where a regular file should be; move it away, or name a file elsewhere ("database" in the configuration, or --database)`,
    )
  }
  if (stat.nlink > 1) {
    throw new MirrorError(
      `${file} has ${stat.nlink} names (hard links). SQLite keeps a write-ahead log for each, so that the mirror is damaged ` +
        'when two of them are used. Find them with find -samefile, and delete all but one, or make them copies',
    )
  }
}

function kindOf(stat: fs.Stats): string {
  if (stat.isDirectory()) return 'a folder'
  if (stat.isSymbolicLink()) return 'a link'
  if (stat.isFIFO()) return 'a pipe'
  return stat.isSocket() ? 'a socket' : 'a device'
}
