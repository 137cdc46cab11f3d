import { readRegularFile } from './regular-file.ts'

/** The characters of a header's value: visible ASCII. */
export const TOKEN_PATTERN = /^[\x21-\x7e]+$/

/** Web servers accept no longer header, nginx and Apache 8 kB. A longer file is another one, named by mistake. */
export const LONGEST_TOKEN = 8192

/**
 * A token file that a run cannot use (error code `CONFIGURATION`). The message names the organization and the file,
 * never its contents.
 */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
}

export interface TokenFile {
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
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw explain(
      file,
      `cannot be read: ${REASONS[code] ?? code}`,
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
    reason: 'holds more than a token: a space, a line break, a control character or a letter beyond ASCII',
    todo: 'Write the token alone into it, without "Bearer".',
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  EISDIR: 'it is a folder',
  ENOTREG: 'it is a pipe or a device, not a file',
  ENOTDIR: 'a part of its path is no folder',
}

function explain({ organization, shown }: TokenFile, reason: string, todo: string): TokenFileError {
  return new TokenFileError(`The token file ${shown} of organization ${organization} ${reason}. ${todo}`)
}
