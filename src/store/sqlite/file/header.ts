import fs from 'node:fs'
import { assertPlainFiles } from './plain-files.ts'

export type Header =
  | { kind: 'absent' }
  | { kind: 'empty' }
  | { kind: 'other' }
  | { kind: 'sqlite'; applicationId: number; userVersion: number; isInWal: boolean }

const MAGIC = 'SQLite format 3\0'

/**
 * What a file is, told from its first 100 bytes (https://sqlite.org/fileformat.html#the_database_header), without SQLite:
 * opening a stranger's database could roll back its journal. To be asked before this process opens the file itself,
 * since closing any handle of it drops the locks that SQLite holds. Throws MirrorError where it is no plain file.
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
  // Should a pipe have taken its place meanwhile, nothing waits for a writer.
  const handle = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const bytes = Buffer.alloc(100)
    return bytes.subarray(0, fs.readSync(handle, bytes, 0, 100, 0))
  } finally {
    fs.closeSync(handle)
  }
}
