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
 * the file: closing any handle of it drops SQLite's locks. Throws MirrorError for what is no regular file: a pipe may never end.
 */
export function inspectHeader(file: string): Header {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat) return { kind: 'absent' }
  if (!stat.isFile())
    throw new MirrorError(
      `${file} is ${stat.isDirectory() ? 'a folder' : 'a pipe or a device'}, where a regular file should be; name a file`,
    )
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
  const handle = fs.openSync(file, 'r')
  try {
    const bytes = Buffer.alloc(100)
    return bytes.subarray(0, fs.readSync(handle, bytes, 0, 100, 0))
  } finally {
    fs.closeSync(handle)
  }
}
