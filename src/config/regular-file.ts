import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'

const CHUNK = 64 * 1024

/**
 * Returns the first bytes of a regular file, at most `most`. Throws what the file system throws, and an error with the
 * code `ENOTREG` for a pipe, a device or a socket: reading one may take for ever.
 * `check` throws for a file that must not be read.
 */
export function readRegularFile(
  path: string,
  most: number,
  check: (stats: Stats) => void = () => {},
): Buffer {
  // Before, since opening a device may have effects; after, since the file may have been replaced.
  assertRegular(statSync(path))
  // Without O_NONBLOCK, opening a pipe waits for a process that writes into it.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(descriptor)
    assertRegular(stats)
    check(stats)
    return readUpTo(descriptor, most)
  } finally {
    closeSync(descriptor)
  }
}

function assertRegular(stats: Stats): void {
  if (stats.isFile()) return
  const code = stats.isDirectory() ? 'EISDIR' : 'ENOTREG'
  throw Object.assign(new Error('this is no regular file'), { code })
}

/** Ignores the size that the file system reports: a file may grow, and some report none. */
function readUpTo(descriptor: number, most: number): Buffer {
  const chunks: Buffer[] = []
  for (let left = most; left > 0; ) {
    const chunk = Buffer.alloc(Math.min(left, CHUNK))
    const length = readSync(descriptor, chunk, 0, chunk.length, null)
    if (length === 0) break
    chunks.push(chunk.subarray(0, length))
    left -= length
  }
  return Buffer.concat(chunks)
}
