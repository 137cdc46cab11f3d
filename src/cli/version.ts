import fs from 'node:fs'

/** The version that package.json names. */
export function version(): string {
  const manifest = fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
