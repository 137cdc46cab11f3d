import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Config, type LoadOptions, loadConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/problems.ts'

/** Six lines: what a test adds at the top level begins in line 7, a key of the organization too (4 spaces). */
export const SMALLEST = `api:
  baseUrl: https://admin.example.com
organizations:
  - id: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d
    name: acme
    token: secret-of-acme
`

export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'admin-mirror-config-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

function writeConfig(content: string | Uint8Array): string {
  const file = join(makeFolder(), 'admin-mirror.yaml')
  writeFileSync(file, content)
  return file
}

/** In place of those of another room. */
const NAME_ENDS = ['_raw', '_history', '_changes', '_history_by_key']

export function load(content: string | Uint8Array, options: Partial<LoadOptions> = {}): Config {
  return loadConfig(writeConfig(content), {
    env: {},
    tokens: 'resolve',
    nameEnds: NAME_ENDS,
    ...options,
  })
}

export function errorOf(content: string | Uint8Array, options: Partial<LoadOptions> = {}): ConfigError {
  try {
    load(content, options)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('The configuration was accepted')
}

/** `key line:column` of each problem. */
export function placesOf(content: string | Uint8Array, options: Partial<LoadOptions> = {}): string[] {
  return errorOf(content, options).problems.map(({ key, line, column }) => `${key} ${line}:${column}`)
}
