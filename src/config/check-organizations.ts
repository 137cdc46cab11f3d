import { formatKey, type KeyPath } from './config-error.ts'
import { UUID_PATTERN } from './organization-schema.ts'
import type { Report } from './problems.ts'
import { isRawMap, rawAt, rawItems } from './raw-value.ts'

/**
 * Every organization has an id and a name of its own, in whatever case they are written, no name that could be taken
 * for another's id, and one source for its token.
 */
export function checkOrganizations(raw: unknown, report: Report): void {
  const organizations = rawItems(rawAt(raw, ['organizations']))
  checkUnique('id', organizations, report)
  checkUnique('name', organizations, report)
  const ids = organizations.map((organization) => foldedText(organization, 'id'))
  organizations.forEach((organization, index) => {
    checkNameAgainstIds(foldedText(organization, 'name'), index, ids, report)
    checkTokenSource(organization, ['organizations', index], report)
  })
}

function checkUnique(key: 'id' | 'name', organizations: readonly unknown[], report: Report): void {
  const texts = organizations.map((organization) => foldedText(organization, key))
  texts.forEach((text, index) => {
    const first = texts.indexOf(text)
    if (text === null || first === index) return
    const other = formatKey(['organizations', first, key])
    report(['organizations', index, key], `is the same as ${other}. Give each organization its own.`)
  })
}

function checkNameAgainstIds(
  name: string | null,
  index: number,
  ids: readonly (string | null)[],
  report: Report,
): void {
  if (name === null || !UUID_PATTERN.test(name)) return
  const other = ids.findIndex((id, position) => id === name && position !== index)
  if (other < 0) return
  report(['organizations', index, 'name'], `is the id of organizations[${other}]. Write a short word.`)
}

function checkTokenSource(organization: unknown, path: KeyPath, report: Report): void {
  if (!isRawMap(organization)) return
  const given = ['token', 'tokenFile'].filter((key) => organization[key] !== undefined)
  if (given.length === 0) {
    report(
      [...path, 'token'],
      `is missing. Write token: \${NAME} for an environment variable, or tokenFile: with the path of a file.`,
    )
  } else if (given.length === 2) {
    report([...path, 'tokenFile'], 'is given beside token. Keep one of the two.', 'key')
  }
}

function foldedText(organization: unknown, key: string): string | null {
  const text = rawAt(organization, [key])
  return typeof text === 'string' ? text.toLowerCase() : null
}
