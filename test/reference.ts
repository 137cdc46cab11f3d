import fs from 'node:fs'
import path from 'node:path'
import { EXIT_CODES } from '../src/cli/exit-code.ts'
import { isMapping } from '../src/config/yaml.ts'
import { createCounters, metricsText } from '../src/listener/metrics.ts'
import { editorSchema, type JsonSchema } from './config/editor-schema.ts'
import { at, listOf, statusOf } from './helpers/status.ts'

// The tables of config/REFERENCE.md are made from the code: `npm run reference` writes them, a test compares them.

export const REFERENCE = path.resolve(import.meta.dirname, '../config/REFERENCE.md')

/** The text with its tables made anew. Throws if the place of one is missing. */
export async function withTables(text: string): Promise<string> {
  const tables: readonly (readonly [string, string])[] = [
    ['keys', table(['key', 'default', 'meaning'], keysOf(editorSchema()))],
    ['exit codes', table(['exit code', 'meaning'], Object.entries(EXIT_CODES))],
    ['metrics', table(['metric', 'labels', 'is'], await metrics())],
  ]
  return tables.reduce((whole, [name, made]) => {
    const place = new RegExp(`(<!-- ${name}: [^\\n]*-->\\n).*?(<!-- end of ${name} -->)`, 's')
    if (!place.test(whole)) throw new Error(`REFERENCE.md has no place for ${name}`)
    return whole.replace(place, (_, begin, end) => `${begin}${made}\n${end}`)
  }, text)
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |')
}

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return ['', line(columns), line(columns.map(() => '---')), ...rows.map(line), ''].join('\n')
}

type KeyRow = readonly [key: string, byDefault: string, meaning: string]

/** Each key of a mapping and of the mappings below it, in the order of the schema. */
function keysOf(schema: JsonSchema, prefix = ''): KeyRow[] {
  const { properties = {}, required = [] } = schema
  if (!isMapping(properties)) return []
  return Object.entries(properties).flatMap(([name, part]) => {
    if (!isMapping(part)) return []
    const key = `${prefix}${name}`
    const row: KeyRow = [
      `\`${key}\``,
      defaultOf(part, Array.isArray(required) && required.includes(name)),
      typeof part.description === 'string' ? part.description : '',
    ]
    // What is said of the orders goes for each collection.
    if (key === 'collections')
      return [row, ...keysOf(mappingIn(part.additionalProperties), 'collections.NAME.')]
    if (key === 'organizations') return [row, ...keysOf(mappingIn(part.items), 'organizations[].')]
    // Those of `refresh` are said once, for all.
    return key.startsWith('organizations[].') ? [row] : [row, ...keysOf(mappingIn(part), `${key}.`)]
  })
}

/** The schema of a mapping, where it is one of several that are allowed, too. */
function mappingIn(part: unknown): JsonSchema {
  if (!isMapping(part)) return {}
  if (part.properties) return part
  const choices = Array.isArray(part.anyOf) ? part.anyOf.map(mappingIn) : []
  return choices.find((choice) => choice.properties) ?? {}
}

function defaultOf(part: JsonSchema, isRequired: boolean): string {
  const { default: value } = part
  if (isRequired) return 'required'
  if (value === undefined || value === null) return ''
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``
}

async function metrics(): Promise<string[][]> {
  const status = statusOf([listOf('acme', { fresh_as_of: at(1) })])
  const counters = createCounters()
  counters.request('acme', 200)
  const scrape = await metricsText(status, { stalled: null, unusable: null }, counters)
  return [...scrape.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = '', help = '']) => {
    const samples = scrape.split('\n').filter((text) => text.startsWith(`${name}{`))
    const labels = samples.flatMap((text) => text.match(/\w+(?==")/g) ?? [])
    return [`\`${name}\``, [...new Set(labels)].join(', '), help.replaceAll('\\n', ' ')]
  })
}

if (import.meta.filename === process.argv[1]) {
  fs.writeFileSync(REFERENCE, await withTables(fs.readFileSync(REFERENCE, 'utf8')))
}
