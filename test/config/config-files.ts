import { type Config, type LoadOptions, parseConfig } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/yaml.ts'

/** Six lines: what a test adds at the top level begins in line 7, a key of the organization too (4 spaces). */
export const SMALLEST = `api:
  baseUrl: https://admin.example.com
organizations:
  - id: 7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d
    name: acme
    token: secret-of-acme
`

const FILE = '/etc/mirror/admin-mirror.yaml'

export function load(text: string, options: Partial<LoadOptions> = {}): Config {
  return parseConfig(text, FILE, { env: {}, tokens: 'resolve', ...options })
}

/** `line:column  key: message` of each problem. */
export function problemsOf(text: string, options: Partial<LoadOptions> = {}): string[] {
  try {
    load(text, options)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(`${FILE}:`, '').split('\n')
    throw error
  }
  return []
}
