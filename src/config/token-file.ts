import { readFileSync } from 'node:fs'

/** Web servers accept no longer header (nginx and Apache: 8 kB). A longer file is another one, named by mistake. */
const LONGEST_TOKEN = 8192

/**
 * A token file that a run cannot use (error code `CONFIGURATION`). The message names the organization and the file,
 * never its contents.
 */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
}

/**
 * What stands around a token in a text or a file of variables, and in none: a quote, a bracket, a comma, `NAME=` in capitals or with a word for a
 * secret. A token may hold a `=` itself.
 */
const MORE = /["'`<>,;]|^(?:[A-Z][A-Z0-9_]+|\w*(?:[Tt]oken|TOKEN|[Kk]ey|KEY|[Ss]ecret|SECRET))=[A-Za-z0-9]/

/** Why a text is no token, or null. A header holds visible ASCII. */
export function tokenFault(text: string): string | null {
  if (text === '') return 'is empty'
  if (text.length > LONGEST_TOKEN)
    return `holds more than a token, which has at most ${LONGEST_TOKEN} characters`
  if (/^[\x21-\x7e]+$/.test(text) && !MORE.test(text)) return null
  return 'holds more than a token: a quote, NAME= before it, a bracket, a comma, a space, a line break, a control character or a letter beyond ASCII'
}

interface TokenFile {
  organization: string
  /** Absolute. */
  path: string
  /** The path as messages show it, without what came from variables: one may hold a secret by mistake. */
  shown: string
}

/** Returns the token in the file, without white space around it. Throws a TokenFileError. */
export function readTokenFile({ organization, path, shown }: TokenFile): string {
  const fail = (reason: string) =>
    new TokenFileError(
      `The token file ${shown} of organization ${organization} ${reason}. Put the token alone there, or change tokenFile.`,
    )
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code)
    throw fail(`cannot be read: ${REASONS[code] ?? code}`)
  }
  const fault = token.startsWith('${') ? 'holds the name of a variable' : tokenFault(token)
  if (fault !== null) throw fail(fault)
  return token
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not read it',
  ENOENT: 'there is no such file',
  EISDIR: 'it is a folder',
}
