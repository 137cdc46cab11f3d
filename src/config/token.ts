import { readRegularFile } from './regular-file.ts'

/** What can stand in a header: visible ASCII. */
export const TOKEN_PATTERN = /^[\x21-\x7e]+$/

/** Web servers take no longer header, nginx and Apache 8 kB. What is longer is another file, named by mistake. */
export const LONGEST_TOKEN = 8192

/**
 * A token file that cannot be used in the run that needs it (error code `CONFIGURATION`). The message names the
 * organization and the file, never what is in it.
 */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
}

interface TokenFile {
  organization: string
  /** Absolute. */
  path: string
  /** The path as messages show it: the file may have it from a variable that holds a secret by mistake. */
  shown: string
}

/** Reads the file again at each call, so that a token can be changed while the program runs. */
export function createTokenFileReader({ organization, path, shown }: TokenFile): () => string {
  return () => {
    const token = readOrExplain(path, (reason, todo) => explain(organization, shown, reason, todo))
    if (token === '') {
      throw explain(organization, shown, 'is empty', 'Write the token into it.')
    }
    if (token.length > LONGEST_TOKEN) {
      throw explain(
        organization,
        shown,
        `holds more than a token, which has at most ${LONGEST_TOKEN} characters`,
        'Write the token alone into it.',
      )
    }
    if (!TOKEN_PATTERN.test(token)) {
      throw explain(
        organization,
        shown,
        'holds more than a token: a space, a line break, a control character or a letter beyond ASCII',
        'Write the token alone into it, without "Bearer".',
      )
    }
    return token
  }
}

const LINE_END = '\r\n'.length

function readOrExplain(path: string, explained: (reason: string, todo: string) => TokenFileError): string {
  try {
    return readRegularFile(path, LONGEST_TOKEN + LINE_END + 1)
      .toString()
      .replace(/\r?\n$/, '')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw explained(`cannot be read: ${REASONS[code] ?? code}`, 'Put the token there, or change tokenFile.')
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

function explain(organization: string, shown: string, reason: string, todo: string): TokenFileError {
  return new TokenFileError(`The token file ${shown} of organization ${organization} ${reason}. ${todo}`)
}
