import { DEFAULT_COLLECTIONS } from './collections.ts'
import type { KeyPath } from './config-error.ts'
import { nearest } from './nearest.ts'
import type { Report } from './problems.ts'
import { rawAt, rawEntries, rawItems } from './raw-value.ts'

const LONGEST_NAME = 60

/**
 * Names that can be tables, filters that can be sent, keys that are compared, and overrides of what there is.
 * @param nameEnds How the names of further tables, views and indexes of a collection end, such as `_raw`.
 */
export function checkCollections(raw: unknown, report: Report, nameEnds: readonly string[]): void {
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
    const path = ['collections', name]
    const first = names[folded.indexOf(folded[index] ?? '')]
    const fault = findNameFault(name)
    const base = names.find((_, other) => nameEnds.some((end) => folded[index] === folded[other] + end))
    if (fault !== null) report(path, `${fault} ${PATH_HINT}`, 'key')
    else if (base !== undefined)
      report(path, `is what the mirror calls something of the collection ${base}. ${PATH_HINT}`, 'key')
    else if (first !== name)
      report(
        path,
        `differs from ${first} in case only, which tables do not tell apart. Write ${first}, or choose another name.`,
        'key',
      )
  })
}

const PATH_HINT = 'Choose another name, and give the address as its path, which can be anything.'

/** What keeps a name from being a table beside ours (interface, section 4), or null. */
function findNameFault(name: string): string | null {
  const folded = name.toLowerCase()
  if (!/^[a-z][a-z0-9_]*$/.test(folded))
    return 'must be a name of letters, digits and _ that begins with a letter.'
  if (name.length > LONGEST_NAME) return `must be at most ${LONGEST_NAME} letters long.`
  if (folded.includes('__') || folded.endsWith('_'))
    return 'must not hold __ or end in _, which names the views of a collection.'
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
    checkFilterNames(rawAt(entry, ['filters']), [...path, name, 'filters'], report)
    const keys = keysOf(rawAt(collections, [name, 'key']))
    rawItems(rawAt(entry, ['ignore'])).forEach((field, index) => {
      if (!keys.includes(field)) return
      report(
        [...path, name, 'ignore', index],
        'is part of the key of this collection, which is always compared. Remove it.',
      )
    })
  }
}

function checkFilterNames(filters: unknown, path: KeyPath, report: Report): void {
  for (const [name] of rawEntries(filters)) {
    if (name !== 'page') continue
    report(
      [...path, name],
      'cannot be a filter: the walk asks for its pages itself. Remove it, or see backfill --from-page.',
      'key',
    )
  }
}

function keysOf(key: unknown): readonly unknown[] {
  if (key === undefined) return ['id']
  return Array.isArray(key) ? key : [key]
}
