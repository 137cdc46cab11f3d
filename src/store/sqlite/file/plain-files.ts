import fs from 'node:fs'
import { MirrorError } from '../../../errors.ts'

/** What SQLite puts beside a database. */
const BESIDE = ['-wal', '-shm', '-journal']

/**
 * Whether the file is there. Throws MirrorError unless it, and what lies beside it for SQLite, are regular files with one
 * name each: a pipe would be waited for without end, and under a second name the same file gets a second write-ahead log.
 * Links that lead to the mirror are followed, as SQLite does; what lies beside it is no link.
 */
export function assertPlainFiles(file: string): boolean {
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
      `${file} is ${kindOf(stat)}, where a regular file should be; move it away, or name a file elsewhere as "database" in the configuration`,
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
