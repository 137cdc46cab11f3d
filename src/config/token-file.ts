import { readFileSync } from 'node:fs'

/** A token file that a run cannot use (error code `CONFIGURATION`). The message never holds its contents. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
}

/**
 * Whether a text is a token alone: visible ASCII, as a header holds it, without what stands around one in other files (quotes, brackets, `NAME=`).
 * Web servers accept no longer header.
 */
export function isToken(text: string): boolean {
  return (
    /^[\x21-\x7e]{1,8192}$/.test(text) &&
    !/["'`<>,;]|^(?:[A-Z][A-Z0-9_]*|\w*(?:[Tt]oken|[Kk]ey|[Ss]ecret))=\w/.test(text)
  )
}

/** Returns the token in the file `path`, without white space around it. `what` names the file and its organization. Throws a TokenFileError. */
export function readTokenFile(path: string, what: string): string {
  let token: string
  try {
    token = readFileSync(path, 'utf8').trim()
  } catch (error) {
    // Node's own message ends with the path, which may come from a variable and be a secret by mistake.
    const [reason] = (error as Error).message.split(', ')
    throw new TokenFileError(`The ${what} cannot be read: ${reason}`)
  }
  if (isToken(token) && !token.startsWith('${')) return token
  const fault = token === '' ? 'is empty' : 'holds more than a token'
  throw new TokenFileError(`The ${what} ${fault}. Put the token alone there, or change tokenFile.`)
}
