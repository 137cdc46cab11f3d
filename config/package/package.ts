import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import lock from '../../package-lock.json' with { type: 'json' }
import manifest from '../../package.json' with { type: 'json' }

// npm run package: makes build/admin-mirror-VERSION.tgz, the program as plain JavaScript for npm and for the image. The same
// source makes the same bytes: npm packs each file with one fixed time.

const ROOT = path.resolve(import.meta.dirname, '../..')
const BUILD = path.join(ROOT, 'build')
const PROGRAM = path.join(BUILD, 'admin-mirror')

/**
 * What is installed beside the program, since it is machine code, or loads files by itself. Everything else is bundled: a command
 * then reads some twenty files instead of hundreds, and starts in half of the time.
 */
const INSTALLED = ['better-sqlite3', 'pg', 'pino'] as const

fs.rmSync(BUILD, { recursive: true, force: true })
const packages = await bundle()
writeLicenses(packages)
for (const file of [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  ...fs.globSync('config/*.{md,yaml,json,service}', { cwd: ROOT }),
])
  if (file !== 'config/admin-mirror.yaml') copy(file, file)

const { name, version, description, license, type } = manifest
const own = {
  name,
  version,
  description,
  license,
  type,
  bin: { 'admin-mirror': 'dist/bin.js' },
  engines: { node: '>=24' },
  dependencies: Object.fromEntries(INSTALLED.map((one) => [one, manifest.dependencies[one]])),
}
writeJson('package.json', own)
// Everybody who installs it gets the versions of the lockfile.
writeJson('npm-shrinkwrap.json', {
  name,
  version,
  lockfileVersion: lock.lockfileVersion,
  packages: { '': own, ...installedPackages() },
})
// A checkout made under a strict umask has files for its owner alone.
execFileSync('chmod', ['-R', 'u=rwX,go=rX', PROGRAM])
execFileSync('npm', ['pack', PROGRAM, '--pack-destination', BUILD, '--loglevel', 'error'], {
  cwd: ROOT,
  stdio: ['ignore', 'ignore', 'inherit'],
})
console.log(`build/${name}-${version}.tgz`)

/** Writes the program. The thread that copies a mirror is a program of its own. Returns the folders of the packages in it. */
async function bundle(): Promise<string[]> {
  const build = await rolldown({
    cwd: ROOT,
    input: { bin: 'src/bin.js', 'copy-thread': 'src/store/sqlite/copy-thread.ts' },
    platform: 'node',
    external: [/^node:/, ...INSTALLED],
  })
  const { output } = await build.write({
    dir: path.join(PROGRAM, 'dist'),
    chunkFileNames: '[name].js',
    // Less to read; the names in stack traces stay.
    minify: { compress: false, mangle: false, codegen: true },
  })
  const modules = output.flatMap((chunk) => (chunk.type === 'chunk' ? Object.keys(chunk.modules) : []))
  const folders = modules.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? [])
  return [...new Set(folders)].toSorted()
}

/** The licenses of the packages in the bundle ask for their text. */
function writeLicenses(folders: readonly string[]): void {
  const texts = folders.map((folder) => {
    const [file] = fs.globSync('{LICEN[SC]E,license,licence}*', { cwd: folder })
    if (file === undefined) throw new Error(`${folder} has no license`)
    const title = folder.split('/node_modules/').at(-1)
    return `${title}\n\n${fs.readFileSync(path.join(folder, file), 'utf8')}`
  })
  fs.writeFileSync(path.join(PROGRAM, 'dist/LICENSES.txt'), texts.join(`\n${'-'.repeat(80)}\n`))
}

/** The entries of the lockfile for what is installed, and what that needs. */
function installedPackages(): Record<string, unknown> {
  type Entry = { version?: string; dependencies?: object; optionalDependencies?: object }
  const entries: Record<string, Entry> = lock.packages
  const needed: Record<string, Entry> = {}
  const add = (wanted: string, from: string): void => {
    // As Node looks for it: in the folder of the package that asks, then in those above.
    for (let folder = from; ; folder = folder.slice(0, Math.max(folder.lastIndexOf('/node_modules/'), 0))) {
      const place = `${folder === '' ? '' : `${folder}/`}node_modules/${wanted}`
      const entry = entries[place]
      if (entry === undefined && folder !== '') continue
      if (entry === undefined || place in needed) return
      needed[place] = entry
      for (const other of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }))
        add(other, place)
      return
    }
  }
  for (const one of INSTALLED) add(one, '')
  return Object.fromEntries(Object.entries(needed).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function copy(from: string, to: string): void {
  fs.mkdirSync(path.dirname(path.join(PROGRAM, to)), { recursive: true })
  fs.copyFileSync(path.join(ROOT, from), path.join(PROGRAM, to))
}

function writeJson(file: string, value: unknown): void {
  fs.writeFileSync(path.join(PROGRAM, file), `${JSON.stringify(value, null, 2)}\n`)
}
