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
 * What an environment file writes before a token: a quote, or a name and `=`. A token may hold a `=` itself, so only a name of
 * capitals, or one that speaks of a token, is taken for one, and only before what a token may begin with.
 */
const BEFORE_A_TOKEN =
  /^(?:["'`]|(?:[A-Z][A-Z0-9_]+|\w*(?:[Tt]oken|TOKEN|[Kk]ey|KEY|[Ss]ecret|SECRET))=["'`]?[A-Za-z0-9])/

/** What stands around a token in a text, and in none: `<token>`, `token;`. */
const NO_TOKEN = /["'`<>,;]/

/** Why a text is no token, or null. A header holds visible ASCII. */
export function tokenFault(text: string): string | null {
  if (text === '') return 'is empty'
  if (text.length > LONGEST_TOKEN)
    return `holds more than a token, which has at most ${LONGEST_TOKEN} characters`
  if (/^[\x21-\x7e]+$/.test(text) && !BEFORE_A_TOKEN.test(text) && !NO_TOKEN.test(text)) return null
  return 'holds more than a token: quotes around it, NAME= before it, a bracket, a comma, a space, a line break, a control character or a letter beyond ASCII'
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
  const fail = (reason: string, todo: string) =>
    new TokenFileError(`The token file ${shown} of organization ${organization} ${reason}. ${todo}`)
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code)
    const [reason = code, todo = 'Put the token there, or change tokenFile.'] = REASONS[code] ?? []
    throw fail(`cannot be read: ${reason}`, todo)
  }
  const fault = /^\$\{\w+\}$/.test(token) ? 'holds the name of a variable' : tokenFault(token)
  if (fault !== null) throw fail(fault, 'Write the token alone into it, without "Bearer".')
  return token
}

const REASONS: Readonly<Record<string, string[]>> = {
  EACCES: ['this user may not read it', 'Allow it to a group of this user: chgrp GROUP and chmod 640.'],
  ENOENT: ['there is no such file'],
  EISDIR: ['it is a folder'],
  ENOTDIR: ['a part of its path is not a folder'],
}
