import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { isMapping, mappingOf } from '../../src/config/yaml.ts'
import { load, SMALLEST } from './config-files.ts'
import { editorSchema, SCHEMA_FILE, schemaText } from './editor-schema.ts'

it('the JSON Schema in the repository is the one that npm run schema writes', () => {
  expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(schemaText())
})

/** Every key below a mapping that the schema allows, as `rateLimit.scope`. */
function allowedKeys(schema: unknown, path = ''): string[] {
  const { properties, anyOf } = mappingOf(schema)
  const forms = Array.isArray(anyOf) ? anyOf.flatMap((form) => allowedKeys(form, path)) : []
  return Object.entries(mappingOf(properties)).reduce(
    (keys, [name, part]) => keys.concat(path + name, allowedKeys(part, `${path}${name}.`)),
    forms,
  )
}

function setKeys(value: unknown, path = ''): string[] {
  if (!isMapping(value)) return []
  return Object.entries(value).flatMap(([name, part]) => [path + name, ...setKeys(part, `${path}${name}.`)])
}

describe('config/admin-mirror.example.yaml', () => {
  const text = readFileSync(
    fileURLToPath(new URL('../../config/admin-mirror.example.yaml', import.meta.url)),
    'utf8',
  )
  const whole = text.replaceAll(/^#( *[a-z]\w*:)/gim, '$1')
  const { fingerprint: _, ...example } = load(text, { env: { ACME_TOKEN: 'x' } })

  it('begins with the line by which an editor finds the schema, and sets no more than it must in its seven lines', () => {
    const { fingerprint: __, ...smallest } = load(SMALLEST.replace('secret-of-acme', `\${ACME_TOKEN}`), {
      tokens: 'leave',
    })

    expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./admin-mirror.schema.json')
    expect(text.split('\n').filter((line) => !/^(#|$)/.test(line))).toHaveLength(7)
    expect(JSON.stringify(example)).toBe(JSON.stringify(smallest))
  })

  it('has every other key commented out, with its default', () => {
    const schema = mappingOf(editorSchema().properties)
    const collection = allowedKeys(mappingOf(schema.collections).additionalProperties)

    const { http, fingerprint: __, ...all } = load(whole, { env: { ACME_TOKEN: 'x' } })

    const { collections, ...set } = parse(whole)
    expect(setKeys({ ...set, collections: {} })).toEqual(
      expect.arrayContaining(allowedKeys({ properties: schema })),
    )
    expect(setKeys(Object.assign({}, ...Object.values(collections)))).toEqual(
      expect.arrayContaining(collection),
    )
    expect(http).toEqual({ host: '127.0.0.1', port: 9464 })
    expect(JSON.parse(JSON.stringify({ ...all, http: null }))).toEqual(JSON.parse(JSON.stringify(example)))
  })
})
