import fs from 'node:fs'

export type Header =
  | { kind: 'absent' }
  | { kind: 'empty' }
  | { kind: 'other' }
  | { kind: 'sqlite'; applicationId: number; userVersion: number }

const MAGIC = 'SQLite format 3\0'

/**
 * What a file is, told from its first 100 bytes (https://sqlite.org/fileformat.html#the_database_header), without SQLite:
 * opening a stranger's database could roll back its journal. To be asked before this process opens the file itself,
 * since closing any handle of it drops the locks that SQLite holds.
 */
export function inspectHeader(file: string): Header {
  const bytes = readStart(file)
  if (!bytes) return { kind: 'absent' }
  if (bytes.length === 0) return { kind: 'empty' }
  if (bytes.length < 100 || bytes.toString('latin1', 0, 16) !== MAGIC) return { kind: 'other' }
  return { kind: 'sqlite', applicationId: bytes.readUInt32BE(68), userVersion: bytes.readUInt32BE(60) }
}

function readStart(file: string): Buffer | null {
  let handle: number
  try {
    handle = fs.openSync(file, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  try {
    const bytes = Buffer.alloc(100)
    return bytes.subarray(0, fs.readSync(handle, bytes, 0, 100, 0))
  } finally {
    fs.closeSync(handle)
  }
}
