import fs from 'node:fs'
import path from 'node:path'
import type { Config } from '../config/config.ts'
import { UsageError } from '../errors.ts'
import type { OutputFile } from './output-file.ts'
import { realPath } from './real-path.ts'

/**
 * Throws UsageError where an output would replace a file that the program lives on: the mirror and what SQLite and we keep
 * beside it, the published copy, the configuration, a token; whatever links lead there.
 */
export function assertMayReplace(
  { shown, place }: OutputFile,
  { database, publish, file, organizations }: Config,
): void {
  const mirrors = [database, realPath(database)]
  const tokenFiles = organizations.map((organization) => organization.tokenFile())
  const kept = [
    ...mirrors.flatMap((one) => [one, `${one}-wal`, `${one}-shm`, `${one}-journal`]),
    ...[publish, file, ...tokenFiles].filter((one) => one !== null),
  ]
  const isKept = kept.some((one) => isSameFile(place, one))
  const isInOwners = mirrors.some((one) => isInside(place, realPath(`${one}-owners`)))
  if (isKept || isInOwners)
    throw new UsageError(
      `${shown}: this is a file of the mirror, its configuration or a token; choose another one`,
    )
}

function isSameFile(one: string, other: string): boolean {
  if (realPath(one) === realPath(other)) return true
  const [left, right] = [one, other].map(statOf)
  return left != null && right != null && left.dev === right.dev && left.ino === right.ino
}

function statOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file, { throwIfNoEntry: false })
  } catch {
    // A file that cannot be looked at cannot be replaced either.
    return undefined
  }
}

function isInside(file: string, folder: string): boolean {
  const way = path.relative(folder, file)
  return way === '' || (!path.isAbsolute(way) && way.split(path.sep)[0] !== '..')
}
