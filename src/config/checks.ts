import { dirname, resolve } from 'node:path'
import { DEFAULT_COLLECTIONS } from './organizations.ts'
import { isPostgresAddress } from './postgres-address.ts'
import { formatKey, type KeyPath, nearest } from './problems.ts'
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
  checkFilters(collections, ['collections'], report)
  const organizations = Array.isArray(top.organizations) ? top.organizations.map(mappingOf) : []
  checkOrganizations(organizations, report)
  for (const [index, organization] of organizations.entries()) {
    const [own, path] = [mappingOf(organization.collections), ['organizations', index, 'collections']]
    for (const name of Object.keys(own).filter((one) => !names.includes(one))) {
      const meant = nearest(name, names)
      const hint = meant === null ? 'Define it there first.' : `Did you mean ${meant}?`
      report([...path, name], `is not defined under collections at the top of the file. ${hint}`, 'key')
    }
    checkFilters(own, path, report)
  }
}

function mappingOf(value: unknown): Mapping {
  return isMapping(value) ? value : {}
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The copy replaces what is at its place, so it must be a file of its own. */
function checkPaths({ database, publish }: Mapping, report: Report, file: string): void {
  if (typeof publish !== 'string') return
  const mirror = typeof database === 'string' ? database : '../data/mirror.db'
  const placeOf = (path: string) => resolve(dirname(file), path)
  if (isPostgresAddress(mirror))
    report(['publish'], 'copies a mirror in a file, and this one is on a server. Remove it.', 'key')
  else if ([file, placeOf(mirror)].includes(placeOf(publish)))
    report(['publish'], 'is the same file as database, or this one. Name another one.')
}

/** Every organization needs its own id and name, in any case, and one source for its token. */
function checkOrganizations(organizations: readonly Mapping[], report: Report): void {
  for (const key of ['id', 'name']) {
    const texts = organizations.map(({ [key]: text }) => (typeof text === 'string' ? text.toLowerCase() : ''))
    for (const [index, text] of texts.entries()) {
      const first = texts.indexOf(text)
      const other = formatKey(['organizations', first, key])
      if (first < index && text !== '')
        report(['organizations', index, key], `is the same as ${other}. Give each organization its own.`)
    }
  }
  for (const [index, { token, tokenFile, ...others }] of organizations.entries()) {
    const why = `is missing. Write token: \${NAME} for an environment variable, or tokenFile: with the path of a file.`
    if (token !== undefined && tokenFile !== undefined)
      report(['organizations', index, 'tokenFile'], 'is given beside token. Keep one of the two.', 'key')
    if (token === undefined && tokenFile === undefined && Object.keys(others).length > 0)
      report(['organizations', index, 'token'], why)
  }
}

/** A collection's name is that of a table beside the mirror's own tables. */
function checkNames(names: readonly string[], report: Report, nameEnds: readonly string[]): void {
  const folded = names.map((name) => name.toLowerCase())
  for (const [index, own] of folded.entries()) {
    const isForm = /^(?!sync_|sqlite_|organizations$)[a-z][a-z0-9_]{0,59}(?<!_|_raw|_history)$/.test(own)
    const isTaken =
      folded.indexOf(own) < index || folded.some((base) => nameEnds.some((end) => own === base + end))
    const problem =
      !isForm || own.includes('__')
        ? 'must be a name of at most 60 letters, digits and _ that begins with a letter, without __, not organizations, not sync_... or sqlite_..., and not one that ends in _, _raw or _history.'
        : isTaken && 'is the name of another collection or of one of its tables, in this or another case.'
    const another = 'Choose another name, and give the address as its path, which can be anything.'
    if (problem) report(['collections', names[index] ?? ''], `${problem} ${another}`, 'key')
  }
}

function checkFilters(settings: Mapping, path: KeyPath, report: Report): void {
  const why =
    'cannot be a filter: the walk asks for its pages itself. Remove it, or see backfill --from-page.'
  for (const [name, entry] of Object.entries(settings))
    if (mappingOf(mappingOf(entry).filters).page !== undefined)
      report([...path, name, 'filters', 'page'], why, 'key')
}
