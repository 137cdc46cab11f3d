import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { isMapping } from '../../src/config/checks.ts'
import { load, SMALLEST } from './config-files.ts'
import { editorSchema, SCHEMA_FILE, schemaText } from './editor-schema.ts'

/** Every key that the schema allows, as `collections.*.path` or `organizations[].id`. */
function listKeys(schema: unknown, path: string): string[] {
  if (!isMapping(schema) || schema.not !== undefined) return []
  const own = path === '' ? [] : [path]
  const forms = Array.isArray(schema.anyOf) ? schema.anyOf.flatMap((form) => listKeys(form, path)) : []
  const properties = isMapping(schema.properties) ? Object.entries(schema.properties) : []
  const named = properties.flatMap(([name, part]) => listKeys(part, path === '' ? name : `${path}.${name}`))
  const others = isMapping(schema.additionalProperties)
    ? listKeys(schema.additionalProperties, `${path}.*`)
    : []
  return [...new Set([...own, ...forms, ...named, ...others, ...listKeys(schema.items, `${path}[]`)])]
}

/** Every key that a file sets, in the same form. */
function setKeys(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => setKeys(item, `${path}[]`))
  if (!isMapping(value)) return []
  return Object.entries(value).flatMap(([name, part]) => {
    const at = path === '' ? name : `${path}.${name}`
    return [at, ...setKeys(part, at)]
  })
}

function partAt(path: string): Record<string, unknown> {
  const part = path.split('.').reduce<unknown>((schema, name) => {
    return isMapping(schema) && isMapping(schema.properties) ? schema.properties[name] : undefined
  }, editorSchema())
  if (!isMapping(part)) throw new Error(`no schema at ${path}`)
  return part
}

describe('the JSON Schema', () => {
  it('is the one in the repository: npm run schema writes it', () => {
    expect(readFileSync(SCHEMA_FILE, 'utf8')).toBe(schemaText())
  })

  it('requires what the file must have, and refuses unknown keys', () => {
    expect(editorSchema()).toMatchObject({
      type: 'object',
      required: ['api', 'organizations'],
      additionalProperties: false,
    })
    expect(partAt('api')).toMatchObject({ required: ['baseUrl'], additionalProperties: false })
  })

  it('describes every key of the file', () => {
    const properties = editorSchema().properties

    const without = Object.entries(isMapping(properties) ? properties : {}).filter(
      ([, part]) => !isMapping(part) || typeof part.description !== 'string',
    )

    expect(without).toEqual([])
  })

  it('knows the form of a duration, or a variable in its place', () => {
    const { anyOf } = partAt('keepRuns')
    const patterns = (Array.isArray(anyOf) ? anyOf : []).map(
      (form) => new RegExp(isMapping(form) ? String(form.pattern) : ''),
    )

    const isAllowed = (text: string) => patterns.some((pattern) => pattern.test(text))
    expect(['30s', '500ms', `\${KEEP}`].map(isAllowed)).toEqual([true, true, true])
    expect(['30', '0s', '$KEEP', '5 m'].map(isAllowed)).toEqual([false, false, false, false])
  })
})

describe('config/admin-mirror.example.yaml', () => {
  const file = fileURLToPath(new URL('../../config/admin-mirror.example.yaml', import.meta.url))
  const text = readFileSync(file, 'utf8')
  const env = { ACME_TOKEN: 'x' }

  it('begins with the line by which an editor finds the schema', () => {
    expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./admin-mirror.schema.json')
  })

  it('works with its seven lines, which set no more than they must', () => {
    const lines = text.split('\n').filter((line) => !/^(#|$)/.test(line))

    expect(lines).toHaveLength(7)
    expect(load(lines.join('\n'), { env })).toEqual({
      ...load(SMALLEST.replace('secret-of-acme', `\${ACME_TOKEN}`), { env }),
      ...Object.fromEntries(
        ['file', 'database', 'fingerprint', 'ping', 'organizations'].map((key) => [key, expect.anything()]),
      ),
      literalTokens: [],
    })
  })

  it('has every other key commented out, with its default', () => {
    const whole = text.replaceAll(/^#( *[a-z]\w*:)/gim, '$1')
    const known = listKeys(editorSchema(), '')
      .map((key) => key.replace(/\bcollections\.\w+/, 'collections.*'))
      .filter((key) => !/\]$|filters\.\*|^organizations|collections\.\*$/.test(key))
    const set = setKeys(parse(whole), '').map((key) => key.replace(/\bcollections\.\w+/, 'collections.*'))

    const { http, ...loaded } = load(whole, { env })

    expect(known.filter((key) => !set.includes(key))).toEqual([])
    expect(http).toEqual({ host: '127.0.0.1', port: 9464 })
    const { http: _, ...standard } = load(text, { env })
    expect({ ...JSON.parse(JSON.stringify(loaded)), refresh: undefined }).toEqual({
      ...JSON.parse(JSON.stringify(standard)),
      ...Object.fromEntries(['file', 'database', 'fingerprint'].map((key) => [key, expect.any(String)])),
    })
  })
})
