import fs from 'node:fs'
import path from 'node:path'
import { UsageError } from '../../errors.ts'

/** Throws UsageError where an export would take the place of a file that the mirror lives on, whatever links lead there. */
export function assertMayReplace(
  target: string,
  { database, file }: { database: string; file: string },
): void {
  const mirrors = [database, realPath(database)]
  const kept = [...mirrors.flatMap((one) => [one, `${one}-wal`, `${one}-shm`, `${one}-journal`]), file]
  const real = realPath(target)
  // The export is written beside its target first, and so under this name, too.
  const written = [real, `${real}.unfinished`]
  const isKept = kept.some((one) => written.some((place) => isSameFile(place, one)))
  const isInOwners = mirrors.some((one) => isInside(real, realPath(`${one}-owners`)))
  if (isKept || isInOwners)
    throw new UsageError(
      `--output ${target}: this is a file of the mirror or its configuration; choose another one`,
    )
}

function isSameFile(one: string, other: string): boolean {
  if (realPath(one) === realPath(other)) return true
  const [left, right] = [one, other].map((file) => fs.statSync(file, { throwIfNoEntry: false }))
  return left !== undefined && right !== undefined && left.dev === right.dev && left.ino === right.ino
}

function isInside(file: string, folder: string): boolean {
  const way = path.relative(folder, file)
  return way === '' || (!path.isAbsolute(way) && way.split(path.sep)[0] !== '..')
}

/** As many links as Linux follows; those that lead in a circle end. */
const MOST_LINKS = 40

/** The path without links, also of a file that is not there yet: the log of a mirror comes and goes with its readers. */
function realPath(file: string, links = 0): string {
  try {
    return fs.realpathSync(file)
  } catch {
    const folder = path.dirname(file)
    if (folder === file || links > MOST_LINKS) return file
    const target = linkTarget(file)
    if (target !== null) return realPath(path.resolve(folder, target), links + 1)
    return path.join(realPath(folder, links), path.basename(file))
  }
}

function linkTarget(file: string): string | null {
  try {
    return fs.readlinkSync(file)
  } catch {
    return null
  }
}
