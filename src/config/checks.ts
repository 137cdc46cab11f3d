import { dirname, resolve } from 'node:path'
import { DEFAULT_COLLECTIONS } from './collections.ts'
import { UUID } from './fields.ts'
import { isPostgresAddress } from './postgres-address.ts'
import { formatKey, type KeyPath, nearest } from './problems.ts'
import type { ConfigFile } from './yaml.ts'

type Report = ConfigFile['report']

/**
 * Reports what breaks a rule that involves more than one key. Reads the file's plain values, not the schema's output, so
 * that wrong keys do not hide others; values of a wrong type are left to the schema.
 * @param file Absolute path of the configuration file.
 * @param nameEnds What the mirror appends to a collection's name for its other tables, such as `_raw`.
 */
export function checkAcrossKeys(
  values: unknown,
  report: Report,
  file: string,
  nameEnds: readonly string[],
): void {
  const top = mappingOf(values)
  checkPaths(top, report, file)
  const organizations = Array.isArray(top.organizations) ? top.organizations.map(mappingOf) : []
  checkOrganizations(organizations, report)
  const collections = mappingOf(top.collections)
  const names = [...new Set([...DEFAULT_COLLECTIONS, ...Object.keys(collections)])]
  checkNames(names, report, nameEnds)
  checkSettings(collections, ['collections'], collections, report)
  organizations.forEach((organization, index) => {
    const [own, path] = [mappingOf(organization.collections), ['organizations', index, 'collections']]
    for (const name of Object.keys(own).filter((one) => !names.includes(one))) {
      const meant = nearest(name, names)
      const hint = meant === null ? 'Define it there first.' : `Did you mean ${meant}?`
      report([...path, name], `is not defined under collections at the top of the file. ${hint}`, 'key')
    }
    checkSettings(own, path, collections, report)
  })
}

function mappingOf(value: unknown): Record<string, unknown> {
  return isMapping(value) ? value : {}
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `database`, `publish` and the configuration must be three files. */
function checkPaths({ database = '', publish }: Record<string, unknown>, report: Report, file: string): void {
  const isServer = typeof database === 'string' && isPostgresAddress(database)
  const placeOf = (place: unknown) => (typeof place === 'string' ? resolve(dirname(file), place) : null)
  const mirror = isServer ? null : placeOf(database === '' ? '../data/mirror.db' : database)
  const copy = placeOf(publish)
  if (mirror === file) report(['database'], 'names this configuration file. Name a file of its own.')
  if (copy === file) report(['publish'], 'names this configuration file. Name a file of its own.')
  if (copy !== null && copy === mirror) report(['publish'], 'is the same file as database. Name another one.')
  if (copy !== null && isServer)
    report(['publish'], 'copies a mirror in a file, and this one is on a server. Remove it.', 'key')
}

/** Every organization needs its own id and name, in any case, a name that is no other's id, and one source for its token. */
function checkOrganizations(organizations: readonly Record<string, unknown>[], report: Report): void {
  const folded = (key: 'id' | 'name') =>
    organizations.map((one) => (typeof one[key] === 'string' ? one[key].toLowerCase() : null))
  const [ids, names] = [folded('id'), folded('name')]
  for (const [key, texts] of [['id', ids] as const, ['name', names] as const])
    texts.forEach((text, index) => {
      const first = texts.indexOf(text)
      if (text === null || first === index) return
      const other = formatKey(['organizations', first, key])
      report(['organizations', index, key], `is the same as ${other}. Give each organization its own.`)
    })
  organizations.forEach((organization, index) => {
    const [name, path] = [names[index] ?? '', ['organizations', index]]
    const other = UUID.test(name) ? ids.findIndex((id, at) => id === name && at !== index) : -1
    if (other >= 0) report([...path, 'name'], `is the id of organizations[${other}]. Write a short word.`)
    const hasToken = organization.token !== undefined
    const hasFile = organization.tokenFile !== undefined
    if (hasToken && hasFile)
      report([...path, 'tokenFile'], 'is given beside token. Keep one of the two.', 'key')
    if (!hasToken && !hasFile && Object.keys(organization).length > 0)
      report(
        [...path, 'token'],
        `is missing. Write token: \${NAME} for an environment variable, or tokenFile: with the path of a file.`,
      )
  })
}

const ANOTHER_NAME = 'Choose another name, and give the address as its path, which can be anything.'

function checkNames(names: readonly string[], report: Report, nameEnds: readonly string[]): void {
  const folded = names.map((name) => name.toLowerCase())
  names.forEach((name, index) => {
    const own = folded[index] ?? ''
    const first = names[folded.indexOf(own)]
    const base = names.find((_, other) => nameEnds.some((end) => own === `${folded[other]}${end}`))
    const problem =
      nameFault(own) ??
      (base === undefined ? null : `is the name of a table, view or index of the collection ${base}.`) ??
      (first === name
        ? null
        : `differs from ${first} only in upper and lower case, which names of tables ignore.`)
    if (problem !== null) report(['collections', name], `${problem} ${ANOTHER_NAME}`, 'key')
  })
}

/** Why a name cannot be a table beside the mirror's own tables; null: it can. */
function nameFault(name: string): string | null {
  if (!/^[a-z][a-z0-9_]{0,59}$/.test(name))
    return 'must be a name of at most 60 letters, digits and _ that begins with a letter.'
  if (name.includes('__') || /_(?:raw|history)?$/.test(name))
    return 'must not hold __ or end in _, _raw or _history: views of a collection have such names.'
  if (name === 'organizations' || /^(?:sync|sqlite)_/.test(name))
    return 'must not be organizations or begin with sync_ or sqlite_, which name tables of the mirror itself.'
  return null
}

function checkSettings(
  settings: Record<string, unknown>,
  path: KeyPath,
  collections: Record<string, unknown>,
  report: Report,
): void {
  for (const [name, entry] of Object.entries(settings)) {
    const { filters, ignore } = mappingOf(entry)
    if (mappingOf(filters).page !== undefined)
      report(
        [...path, name, 'filters', 'page'],
        'cannot be a filter: the walk asks for its pages itself. Remove it, or see backfill --from-page.',
        'key',
      )
    const keys = [mappingOf(collections[name]).key ?? 'id'].flat()
    for (const [index, field] of (Array.isArray(ignore) ? ignore : []).entries())
      if (keys.includes(field))
        report([...path, name, 'ignore', index], 'is part of the key, which is always compared. Remove it.')
  }
}
