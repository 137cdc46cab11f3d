import type { KeyPath } from './config-error.ts'

/**
 * Whether a number or a truth value is meant as the text that was typed: a filter of 007 or 1.10 is sent so, and a
 * token may consist of digits.
 */
export function isTakenAsTyped(path: KeyPath): boolean {
  const [first, ...rest] = insideOrganization(path)
  if (first === 'collections') return rest[1] === 'filters' && rest.length > 2
  return isOrganizationKey(path, ['id', 'name', 'token'])
}

/** Whether a value is about a token, which only some commands need: its variables can be left unset for the others. */
export function isAboutToken(path: KeyPath): boolean {
  return isOrganizationKey(path, ['token', 'tokenFile'])
}

function isOrganizationKey(path: KeyPath, keys: readonly string[]): boolean {
  const [first, index, key, ...deeper] = path
  return (
    first === 'organizations' &&
    typeof index === 'number' &&
    deeper.length === 0 &&
    keys.some((name) => name === key)
  )
}

function insideOrganization(path: KeyPath): KeyPath {
  return path[0] === 'organizations' && typeof path[1] === 'number' ? path.slice(2) : path
}
