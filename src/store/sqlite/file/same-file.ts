import fs from 'node:fs'
import { MirrorLostError } from '../../../errors.ts'

/**
 * Returns a check that throws MirrorLostError once the file, or what SQLite keeps beside it while it is open, was moved,
 * deleted, replaced or emptied. The open file could be written to all the same, and all of that would be lost: SQLite looks
 * for that only where it has no write-ahead log. The check takes some microseconds, and opens nothing: to close any handle
 * of the file would drop the locks that SQLite holds.
 */
export function createWhereabouts(file: string): () => void {
  const first = placeOf(file)
  const real = fs.realpathSync(file)
  const beside = [`${real}-wal`, `${real}-shm`].flatMap((name) => {
    const place = placeOf(name)
    return place ? { name, place } : []
  })
  return () => {
    const place = placeOf(file)
    if (!place)
      throw lost(file, 'was deleted or moved away', 'put it back, or run the command again to make a new one')
    if (!isSame(place, first))
      throw lost(file, 'was replaced by another file', 'run the command again to go on with the new file')
    if (place.size === 0n)
      throw lost(
        file,
        'was emptied',
        'delete it with its -wal and -shm, or put a copy in their place, and run the command again',
      )
    for (const one of beside) {
      if (!isSame(placeOf(one.name), one.place))
        throw lost(one.name, 'was deleted or replaced', 'leave it alone, and run the command again')
    }
  }
}

type Place = fs.BigIntStats | null

function placeOf(file: string): Place {
  return fs.statSync(file, { bigint: true, throwIfNoEntry: false }) ?? null
}

/** The two numbers tell a file from every other one that exists at the same time. */
function isSame(one: Place, other: Place): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino
}

function lost(file: string, what: string, advice: string): MirrorLostError {
  return new MirrorLostError(`${file} ${what} while it was in use, so nothing more is written; ${advice}`)
}
