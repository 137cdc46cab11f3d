import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'

/** The characters of a header's value: visible ASCII. Not a token in quotes, nor a line of an environment file, `NAME=token`. */
export const TOKEN_PATTERN = /^(?!["'`]|[A-Za-z_]\w*=[^=])[\x21-\x7e]+$/

/** Web servers accept no longer header (nginx and Apache: 8 kB). A longer file is another one, named by mistake. */
export const LONGEST_TOKEN = 8192

/**
 * A token file that a run cannot use (error code `CONFIGURATION`). The message names the organization and the file,
 * never its contents.
 */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
}

interface TokenFile {
  organization: string
  /** Absolute. */
  path: string
  /** The path as messages show it, without what came from variables: one may hold a secret by mistake. */
  shown: string
}

/** Returns the token in the file, without white space around it. Throws a TokenFileError. */
export function readTokenFile(file: TokenFile): string {
  const token = readText(file)
  const fault = findFault(token)
  if (fault !== null) throw explain(file, fault.reason, fault.todo)
  return token
}

const LINE_END = '\r\n'.length

function readText(file: TokenFile): string {
  try {
    return readRegularFile(file.path, LONGEST_TOKEN + LINE_END + 1)
      .toString()
      .trim()
  } catch (error) {
    const { code, syscall } = error as { code?: string; syscall?: string }
    if (code === 'EACCES' || code === 'EPERM') {
      const [what, mode] = syscall === 'stat' ? ['go through its folder', '750'] : ['read it', '640']
      throw explain(
        file,
        `cannot be read: this user may not ${what}`,
        `Allow it to a group of this user: chgrp GROUP and chmod ${mode}.`,
      )
    }
    throw explain(
      file,
      `cannot be read: ${REASONS[code ?? ''] ?? code ?? 'unknown error'}`,
      'Put the token there, or change tokenFile.',
    )
  }
}

function findFault(token: string): { reason: string; todo: string } | null {
  if (token === '') return { reason: 'is empty', todo: 'Write the token into it.' }
  if (token.length > LONGEST_TOKEN) {
    return {
      reason: `holds more than a token, which has at most ${LONGEST_TOKEN} characters`,
      todo: 'Write the token alone into it.',
    }
  }
  if (TOKEN_PATTERN.test(token)) return null
  return {
    reason:
      'holds more than a token: quotes around it, NAME= before it, a space, a line break, a control character or a letter beyond ASCII',
    todo: 'Write the token alone into it, without "Bearer".',
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
  ENOTREG: 'it is a pipe or a device, not a file',
  ENOTDIR: 'a part of its path is not a folder',
}

function explain({ organization, shown }: TokenFile, reason: string, todo: string): TokenFileError {
  return new TokenFileError(`The token file ${shown} of organization ${organization} ${reason}. ${todo}`)
}

const CHUNK = 64 * 1024

/**
 * Returns the first bytes of a regular file, at most `most`. Throws what the file system throws, and an error with the
 * code `ENOTREG` for a pipe, a device or a socket: reading one may never end.
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
  throw Object.assign(new Error('this is not a regular file'), { code })
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
