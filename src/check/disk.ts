import fs from 'node:fs'
import path from 'node:path'
import { type Finding, fail, ok, warn } from './finding.ts'

/** Kinds of file systems (statfs) on which the locks or the shared memory of SQLite do not work as on a disk. */
const DOUBTFUL: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p, of a virtual machine',
  1702057286: 'FUSE',
  1397113167: 'AFS',
  12805120: 'Ceph',
}

/** Below this nothing can be written for long. */
const LEAST_FREE = 32 * 1024 * 1024

/** The file system that a file is on, or would be. */
export function checkDisk(name: string, file: string): Finding[] {
  const folder = nearestFolder(path.dirname(file))
  const { type, bavail, bsize } = fs.statfsSync(folder)
  const size = sizeOf(file) + sizeOf(`${file}-wal`)
  return [checkFileSystem(name, type >>> 0), checkFree(name, bavail * bsize, size)]
}

function checkFileSystem(name: string, type: number): Finding {
  const kind = DOUBTFUL[type]
  if (kind === undefined) return ok(name, 'is on a file system of this machine')
  return warn(
    name,
    `is on a network file system, or a mount of another kernel (${kind}), where SQLite's locks may fail and damage it`,
    'put it on a local disk or a named volume',
  )
}

function checkFree(name: string, free: number, size: number): Finding {
  const text = `${inBytes(free)} free on its disk${size > 0 ? `, and it has ${inBytes(size)}` : ''}`
  if (free < LEAST_FREE) return fail(name, 4, text, 'make room')
  if (free < size) return warn(name, text, 'make room: a change of a column copies its table')
  return ok(name, text)
}

/** The folder, or the nearest one above it that is there. */
export function nearestFolder(folder: string): string {
  const parent = path.dirname(folder)
  return fs.existsSync(folder) || parent === folder ? folder : nearestFolder(parent)
}

function sizeOf(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

export function inBytes(bytes: number): string {
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 1), units.length)
  return `${(bytes / 1000 ** power).toFixed(power > 2 ? 1 : 0)} ${units[power - 1]}`
}

/** Whether files can be made in a folder, or the folder itself. */
export function checkFolder(name: string, folder: string): Finding {
  const nearest = nearestFolder(folder)
  try {
    if (!fs.statSync(nearest).isDirectory())
      return fail(name, 2, `${nearest} is no folder`, 'name a file in a folder')
    fs.accessSync(nearest, fs.constants.W_OK | fs.constants.X_OK)
    return ok(name, nearest === folder ? `${folder} can be written` : `${folder} can be made`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    return fail(name, 2, `this user may not write to ${nearest} (${code})`, `let it write there`)
  }
}
