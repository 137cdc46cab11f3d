import fs from 'node:fs'
import path from 'node:path'
import { grouped } from '../../../text.ts'
import type { MirrorSize } from '../../core/overview.ts'

/** Opens nothing, since closing any handle of the file drops SQLite's locks. */
export function mirrorSize(file: string): MirrorSize {
  const real = fs.realpathSync(file)
  return { bytes: sizeOf(real), walBytes: sizeOf(`${real}-wal`), freeBytes: freeBytes(real) }
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** What this user may use on the disk of a file, through links. Null if the system does not say, or there is no such file. */
export function freeBytes(file: string): number | null {
  try {
    const folder = path.dirname(fs.realpathSync(file))
    const { bavail, bsize } = fs.statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/** Less room than a page with its WAL may take. Bytes. */
const FULL_BELOW = 1_000_000

/** Why nothing can be written to the mirror: its disk is full. Null if it is not. */
export function fullDisk(file: string, free: number | null): string | null {
  if (free === null || free >= FULL_BELOW) return null
  return `the disk of ${file} is full (${grouped(free)} bytes are free), so nothing can be written: make room`
}
