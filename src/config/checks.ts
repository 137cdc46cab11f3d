import { dirname, resolve } from 'node:path'
import { DEFAULT_COLLECTIONS } from './collections.ts'
import { nearest } from './issues.ts'
import { UUID_PATTERN } from './organizations.ts'
import { isPostgresAddress } from './postgres-address.ts'
import { formatKey, isMapping, type KeyPath, type Report, rawAt, rawEntries, rawItems } from './problems.ts'
import { DEFAULT_DATABASE } from './schema.ts'

/**
 * Reports what breaks a rule that involves more than one key. Reads the file's raw values, not the schema's output, so
 * that wrong keys do not hide others; values of a wrong type are left to the schema.
 * @param file Absolute path of the configuration file.
 * @param nameEnds What the mirror appends to a collection's name for its other tables, such as `_raw`.
 */
export function checkAcrossKeys(
  raw: unknown,
  report: Report,
  file: string,
  nameEnds: readonly string[],
): void {
  checkPaths(raw, report, file)
  checkOrganizations(raw, report)
  checkCollections(raw, report, nameEnds)
}

/** `database`, `publish` and the configuration must be three files. */
function checkPaths(raw: unknown, report: Report, file: string): void {
  const given = textAt(raw, ['database']) ?? DEFAULT_DATABASE
  const database = isPostgresAddress(given) ? null : resolve(dirname(file), given)
  const published = textAt(raw, ['publish'])
  const publish = published === null ? null : resolve(dirname(file), published)
  if (database === file)
    report(['database'], 'names this configuration file. Name a file of its own for the mirror.')
  if (publish === file)
    report(['publish'], 'names this configuration file. Name a file of its own for the copy.')
  if (publish !== null && database === null)
    report(
      ['publish'],
      'copies a mirror in a file, and database names a server, which readers can ask. Remove it.',
      'key',
    )
  if (publish !== null && publish === database)
    report(['publish'], 'is the same file as database. Name another one, best in a folder of its own.')
}

function textAt(raw: unknown, path: KeyPath): string | null {
  const value = rawAt(raw, path)
  return typeof value === 'string' ? value : null
}

/**
 * Every organization must have its own id and name, compared in lower case, a name that is no other's id, and one
 * source for its token.
 */
function checkOrganizations(raw: unknown, report: Report): void {
  const organizations = rawItems(rawAt(raw, ['organizations']))
  const ids = organizations.map((organization) => foldedText(organization, 'id'))
  const names = organizations.map((organization) => foldedText(organization, 'name'))
  checkUnique('id', ids, report)
  checkUnique('name', names, report)
  organizations.forEach((organization, index) => {
    checkNameAgainstIds(names[index] ?? null, index, ids, report)
    checkTokenSource(organization, ['organizations', index], report)
  })
}

function foldedText(organization: unknown, key: string): string | null {
  return textAt(organization, [key])?.toLowerCase() ?? null
}

function checkUnique(key: 'id' | 'name', texts: readonly (string | null)[], report: Report): void {
  const firsts = new Map<string | null, number>()
  texts.forEach((text, index) => {
    const first = firsts.get(text)
    if (first === undefined) firsts.set(text, index)
    if (text === null || first === undefined) return
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
  if (!isMapping(organization)) return
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

/**
 * The names of collections must be possible tables, filters and ignored fields must be allowed, and organizations must
 * override only collections that are defined.
 */
function checkCollections(raw: unknown, report: Report, nameEnds: readonly string[]): void {
  const collections = rawAt(raw, ['collections'])
  const names = [...new Set([...DEFAULT_COLLECTIONS, ...rawEntries(collections).map(([name]) => name)])]
  checkNames(names, report, nameEnds)
  checkSettings(collections, ['collections'], collections, report)
  rawItems(rawAt(raw, ['organizations'])).forEach((organization, index) => {
    const path = ['organizations', index, 'collections']
    checkDefined(rawAt(organization, ['collections']), path, names, report)
    checkSettings(rawAt(organization, ['collections']), path, collections, report)
  })
}

function checkNames(names: readonly string[], report: Report, nameEnds: readonly string[]): void {
  const folded = names.map((name) => name.toLowerCase())
  names.forEach((name, index) => {
    const first = names[folded.indexOf(folded[index] ?? '')]
    const base = names.find((_, other) => nameEnds.some((end) => folded[index] === folded[other] + end))
    let problem = findNameProblem(name)
    if (problem !== null) problem += ` ${PATH_HINT}`
    else if (base !== undefined)
      problem = `is the name of a table, view or index of the collection ${base}. ${PATH_HINT}`
    else if (first !== name)
      problem = `differs from ${first} only in upper and lower case, which names of tables ignore. Write ${first}, or choose another name.`
    if (problem !== null) report(['collections', name], problem, 'key')
  })
}

const PATH_HINT = 'Choose another name, and give the address as its path, which can be anything.'
const LONGEST_NAME = 60

/** Why a name cannot be a table beside the mirror's own tables (README, "The tables"); null: it can. */
function findNameProblem(name: string): string | null {
  const folded = name.toLowerCase()
  if (!/^[a-z][a-z0-9_]*$/.test(folded))
    return 'must be a name of letters, digits and _ that begins with a letter.'
  if (name.length > LONGEST_NAME) return `must be at most ${LONGEST_NAME} characters long.`
  if (folded.includes('__') || folded.endsWith('_'))
    return 'must not hold __ or end in _: views of a collection have such names.'
  if (/_(?:raw|history)$/.test(folded))
    return 'must not end in _raw or _history, which name further tables of a collection.'
  if (folded === 'organizations' || /^(?:sync|sqlite)_/.test(folded)) {
    return 'must not be organizations or begin with sync_ or sqlite_, which name tables of the mirror itself.'
  }
  return null
}

function checkDefined(overrides: unknown, path: KeyPath, names: readonly string[], report: Report): void {
  for (const [name] of rawEntries(overrides)) {
    if (names.includes(name)) continue
    const meant = nearest(name, names)
    const hint =
      meant === null
        ? 'Define it there first; false there keeps it from the other organizations.'
        : `Did you mean ${meant}?`
    report([...path, name], `is not defined under collections at the top of the file. ${hint}`, 'key')
  }
}

function checkSettings(settings: unknown, path: KeyPath, collections: unknown, report: Report): void {
  for (const [name, entry] of rawEntries(settings)) {
    if (rawAt(entry, ['filters', 'page']) !== undefined) {
      report(
        [...path, name, 'filters', 'page'],
        'cannot be a filter: the walk asks for its pages itself. Remove it, or see backfill --from-page.',
        'key',
      )
    }
    const key = rawAt(collections, [name, 'key'])
    const keys: unknown[] = key === undefined ? ['id'] : [key].flat()
    rawItems(rawAt(entry, ['ignore'])).forEach((field, index) => {
      if (!keys.includes(field)) return
      report(
        [...path, name, 'ignore', index],
        'is part of the key of this collection, which is always compared. Remove it.',
      )
    })
  }
}
