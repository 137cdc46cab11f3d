import fs from 'node:fs'
import { MirrorError } from '../errors.ts'

/**
 * Returns a check that throws MirrorError when the file is not any more where it was when this was called. A file that
 * was deleted or replaced while it is open can be written to like any other, and all of it is lost: SQLite looks for that
 * only where it has no write-ahead log. The check takes some microseconds, and opens nothing: to close any handle of the
 * file would drop the locks that SQLite holds.
 */
export function createWhereabouts(file: string): () => void {
  const place = placeOf(file)
  return () => {
    const now = placeOf(file)
    if (now === place) return
    throw new MirrorError(
      now === null
        ? `${file} was deleted or moved away while it was in use, and what was written since then is not in it; ` +
            'put it back, or run the command again to make a new one'
        : `${file} was replaced by another file while it was in use, and what was written since then is not in that; ` +
            'run the command again to go on with the new file',
    )
  }
}

/** What tells a file from every other one that exists at the same time; null where there is none. */
function placeOf(file: string): string | null {
  const stat = fs.statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.dev} ${stat.ino}` : null
}
