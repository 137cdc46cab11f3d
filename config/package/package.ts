import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }

// npm run package: makes build/admin-mirror-VERSION.tgz, the program as plain JavaScript for npm and for the image. The same
// source makes the same bytes: npm packs each file with one fixed time.

const ROOT = path.resolve(import.meta.dirname, '../..')
const BUILD = path.join(ROOT, 'build')
const PROGRAM = path.join(BUILD, 'admin-mirror')

/** A Node comes from the machine or from the image: that of the lockfile is for checkouts. */
const IS_NODE = /^node_modules\/node-linux-/

fs.rmSync(BUILD, { recursive: true, force: true })
run('tsc', '--project', path.join(import.meta.dirname, 'tsconfig.json'))
for (const file of fs.globSync('src/**/*.sql', { cwd: ROOT }))
  copy(file, path.join('dist', path.relative('src', file)))
for (const file of [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  ...fs.globSync('config/*.{md,yaml,json,service}', { cwd: ROOT }),
])
  if (file !== 'config/admin-mirror.yaml') copy(file, file)

const { name, version, description, license, type, dependencies } = manifest
const own = {
  name,
  version,
  description,
  license,
  type,
  bin: { 'admin-mirror': 'dist/bin.js' },
  engines: { node: '>=24' },
  dependencies,
}
writeJson('package.json', own)
// Everybody who installs it gets the versions of the lockfile.
const needed = Object.entries(lock.packages).filter(
  ([folder, facts]) => folder !== '' && !('dev' in facts) && !IS_NODE.test(folder),
)
writeJson('npm-shrinkwrap.json', { ...lock, packages: { '': own, ...Object.fromEntries(needed) } })
// A checkout made under a strict umask has files for its owner alone.
execFileSync('chmod', ['-R', 'u=rwX,go=rX', PROGRAM])
run('npm', 'pack', PROGRAM, '--pack-destination', BUILD, '--loglevel', 'error')
console.log(`build/${name}-${version}.tgz`)

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] })
}

function copy(from: string, to: string): void {
  fs.mkdirSync(path.dirname(path.join(PROGRAM, to)), { recursive: true })
  fs.copyFileSync(path.join(ROOT, from), path.join(PROGRAM, to))
}

function writeJson(file: string, value: unknown): void {
  fs.writeFileSync(path.join(PROGRAM, file), `${JSON.stringify(value, null, 2)}\n`)
}
