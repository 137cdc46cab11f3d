import { dirname, resolve } from 'node:path'
import { DEFAULT_COLLECTIONS } from './organizations.ts'
import { isPostgresAddress } from './postgres-address.ts'
import { formatKey, type KeyPath, nearest } from './problems.ts'
import { UUID } from './schema.ts'
import type { ConfigFile } from './yaml.ts'

type Report = ConfigFile['report']
type Mapping = Readonly<Record<string, unknown>>

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
  const collections = mappingOf(top.collections)
  const names = [...new Set([...DEFAULT_COLLECTIONS, ...Object.keys(collections)])]
  checkPaths(top, report, file)
  checkNames(names, report, nameEnds)
  checkSettings(collections, ['collections'], collections, report)
  const organizations = Array.isArray(top.organizations) ? top.organizations.map(mappingOf) : []
  checkOrganizations(organizations, report)
  for (const [index, organization] of organizations.entries()) {
    const [own, path] = [mappingOf(organization.collections), ['organizations', index, 'collections']]
    for (const name of Object.keys(own).filter((one) => !names.includes(one))) {
      const meant = nearest(name, names)
      const hint = meant === null ? 'Define it there first.' : `Did you mean ${meant}?`
      report([...path, name], `is not defined under collections at the top of the file. ${hint}`, 'key')
    }
    checkSettings(own, path, collections, report)
  }
}

function mappingOf(value: unknown): Mapping {
  return isMapping(value) ? value : {}
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `database`, `publish` and the configuration must be three files. */
function checkPaths({ database = '', publish }: Mapping, report: Report, file: string): void {
  const placeOf = (place: unknown) => (typeof place === 'string' ? resolve(dirname(file), place) : null)
  const isServer = typeof database === 'string' && isPostgresAddress(database)
  const mirror = isServer ? null : placeOf(database === '' ? '../data/mirror.db' : database)
  const copy = placeOf(publish)
  if (mirror === file) report(['database'], 'names this configuration file. Name a file of its own.')
  if (copy === file) report(['publish'], 'names this configuration file. Name a file of its own.')
  if (copy !== null && copy === mirror) report(['publish'], 'is the same file as database. Name another one.')
  if (copy !== null && isServer)
    report(['publish'], 'copies a mirror in a file, and this one is on a server. Remove it.', 'key')
}

/** Every organization needs its own id and name, in any case, a name that is no other's id, and one source for its token. */
function checkOrganizations(organizations: readonly Mapping[], report: Report): void {
  const folded = (key: 'id' | 'name') =>
    organizations.map(({ [key]: text }) => (typeof text === 'string' ? text.toLowerCase() : ''))
  const all = { id: folded('id'), name: folded('name') }
  for (const [index, { token, tokenFile, ...others }] of organizations.entries()) {
    const path = ['organizations', index]
    for (const key of ['id', 'name'] as const) {
      const first = all[key].indexOf(all[key][index] ?? '')
      const other = formatKey(['organizations', first, key])
      if (first < index && all[key][index])
        report([...path, key], `is the same as ${other}. Give each organization its own.`)
    }
    const name = all.name[index] ?? ''
    const other = UUID.test(name) ? all.id.findIndex((id, at) => id === name && at !== index) : -1
    if (other >= 0) report([...path, 'name'], `is the id of organizations[${other}]. Write a short word.`)
    if (token !== undefined && tokenFile !== undefined)
      report([...path, 'tokenFile'], 'is given beside token. Keep one of the two.', 'key')
    if (token === undefined && tokenFile === undefined && Object.keys(others).length > 0)
      report(
        [...path, 'token'],
        `is missing. Write token: \${NAME} for an environment variable, or tokenFile: with the path of a file.`,
      )
  }
}

/** A collection's name is that of a table beside the mirror's own tables. */
function checkNames(names: readonly string[], report: Report, nameEnds: readonly string[]): void {
  const folded = names.map((name) => name.toLowerCase())
  for (const [index, own] of folded.entries()) {
    const first = names[folded.indexOf(own)]
    const base = names.find((_, other) => nameEnds.some((end) => own === `${folded[other]}${end}`))
    const problem = !/^[a-z][a-z0-9_]{0,59}$/.test(own)
      ? 'must be a name of at most 60 letters, digits and _ that begins with a letter.'
      : own.includes('__') || /_(?:raw|history)?$/.test(own)
        ? 'must not hold __ or end in _, _raw or _history: views of a collection have such names.'
        : own === 'organizations' || /^(?:sync|sqlite)_/.test(own)
          ? 'must not be organizations or begin with sync_ or sqlite_, which name tables of the mirror itself.'
          : base !== undefined
            ? `is the name of a table, view or index of the collection ${base}.`
            : first !== names[index] &&
              `differs from ${first} only in upper and lower case, which names of tables ignore.`
    const another = 'Choose another name, and give the address as its path, which can be anything.'
    if (problem) report(['collections', names[index] ?? ''], `${problem} ${another}`, 'key')
  }
}

function checkSettings(settings: Mapping, path: KeyPath, collections: Mapping, report: Report): void {
  for (const [name, entry] of Object.entries(settings)) {
    const { filters, ignore } = mappingOf(entry)
    const why =
      'cannot be a filter: the walk asks for its pages itself. Remove it, or see backfill --from-page.'
    if (mappingOf(filters).page !== undefined) report([...path, name, 'filters', 'page'], why, 'key')
    const keys = [mappingOf(collections[name]).key ?? 'id'].flat()
    for (const [index, one] of (Array.isArray(ignore) ? ignore : []).entries())
      if (keys.includes(one))
        report([...path, name, 'ignore', index], 'is part of the key, which is always compared. Remove it.')
  }
}
