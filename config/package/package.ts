import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }
import { makeDeb } from './deb.ts'
import { makeSbom } from './sbom.ts'
import { files, run, sha256 } from './tools.ts'

// `npm run package`: makes in build/ what people install, twice the same bytes. Its parts, from the first to the last:
//   program/                    the program as JavaScript, as npm and the image take it, with its run-time packages
//   admin-mirror-VERSION.tgz    program/ without these: npm installs them
//   ...-linux-ARCH.tar.gz       program/ and a Node, for a machine that has nothing
//   ..._ARCH.deb                the same for Debian, with a service
//   SHA256SUMS, ...cdx.json     what is in it

const ROOT = path.resolve(import.meta.dirname, '../..')
const BUILD = path.join(ROOT, 'build')
const PROGRAM = path.join(BUILD, 'program')
const MODULES = path.join(PROGRAM, 'node_modules')
const { version } = manifest

/** As Node, npm and Debian name them. */
const ARCHITECTURES = [
  { node: 'x64', debian: 'amd64' },
  { node: 'arm64', debian: 'arm64' },
] as const

/** What documents and examples are installed with the program: nothing that a contributor keeps beside them. */
const DOCUMENTS = [
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  ...['md', 'yaml', 'json', 'service'].map((end) => `:(glob)config/*.${end}`),
]

/** `npm run package -- x64` leaves out the others. */
const wanted = process.argv.slice(2)

// Every file gets the time of the commit, whatever was made when.
const epoch = process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct'], ROOT).trim()
process.env.SOURCE_DATE_EPOCH = epoch
// Modes, too, are those of everybody.
process.umask(0o022)

fs.rmSync(BUILD, { recursive: true, force: true })
compile()
const made = [packForNpm()]
installPackages()
made.push(makeSbom(PROGRAM, path.join(BUILD, `admin-mirror-${version}.cdx.json`), Number(epoch)))
prune()
for (const { node, debian } of ARCHITECTURES) {
  if (wanted.length > 0 && !wanted.includes(node)) continue
  const binary = fetchNode(node)
  if (binary === null) continue
  const tree = path.join(BUILD, `admin-mirror-${version}-linux-${node}`)
  makeTree(tree, node, binary)
  made.push(packTree(tree), ...makeDeb({ tree, build: BUILD, program: PROGRAM, version, arch: debian }))
  fs.rmSync(tree, { recursive: true })
}
const sums = made.map((file) => `${sha256(file)}  ${path.basename(file)}\n`)
fs.writeFileSync(path.join(BUILD, 'SHA256SUMS'), sums.toSorted().join(''))
for (const file of made)
  console.log(`${String(fs.statSync(file).size).padStart(10)}  build/${path.basename(file)}`)

/** program/ without the packages that it needs. */
function compile(): void {
  run('tsc', ['--project', path.join(import.meta.dirname, 'tsconfig.json')], ROOT)
  const compiled = path.join(BUILD, 'compiled')
  fs.mkdirSync(PROGRAM)
  fs.renameSync(path.join(compiled, 'src'), path.join(PROGRAM, 'dist'))
  fs.rmSync(compiled, { recursive: true })
  for (const file of tracked('src/*.sql')) copy(file, path.join('dist', path.relative('src', file)))
  const documents = tracked(...DOCUMENTS)
  for (const file of documents) copy(file, file)
  for (const file of documents.filter((name) => name.endsWith('.md'))) cutLinks(file, documents)
  const { name, description, license, type, dependencies } = manifest
  // The Node 20 of package.json only starts the one that a checkout brings.
  const bin = { 'admin-mirror': 'dist/bin.js' }
  const own = { name, version, description, license, type, bin, engines: { node: '>=24' }, dependencies }
  writeJson('package.json', own)
  writeJson('npm-shrinkwrap.json', runtimeLock(own))
}

/** Leaves of a link to what is not installed, such as the sources, its text alone. */
function cutLinks(file: string, installed: readonly string[]): void {
  const document = path.join(PROGRAM, file)
  const text = fs
    .readFileSync(document, 'utf8')
    .replaceAll(/\[([^\]]*)\]\(([^)#\s]+)[^)]*\)/g, (link, words, target) => {
      const place = path.posix.join(path.posix.dirname(file), target)
      return target.startsWith('https:') || installed.includes(place) ? link : words
    })
  fs.writeFileSync(document, text)
}

/** The same versions for everybody who installs it: the lockfile, less what only development needs and a Node of our own. */
function runtimeLock({ name, license, bin, engines, dependencies }: Record<string, unknown>) {
  const packages = Object.entries(lock.packages).filter(
    ([folder, facts]) => folder !== '' && !('dev' in facts) && !folder.startsWith('node_modules/node-linux-'),
  )
  const root = { name, version, license, dependencies, bin, engines }
  return { ...lock, packages: { '': root, ...Object.fromEntries(packages) } }
}

function packForNpm(): string {
  run('npm', ['pack', '--pack-destination', BUILD, '--loglevel', 'error'], PROGRAM)
  return path.join(BUILD, `admin-mirror-${version}.tgz`)
}

function installPackages(): void {
  const options = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  run('npm', ['ci', ...options], PROGRAM)
}

function prune(): void {
  // What no running program reads: types, sources, maps, what begins with a dot (npm's notes have the time), and binaries for other systems than Linux.
  const unneeded =
    /\.[cm]?ts$|\.map$|(?:^|\/)\.|^node-addon-api\/|^better-sqlite3\/(?:deps|src|binding\.gyp|prebuilds\/(?!linux))/
  for (const file of files(MODULES)) if (unneeded.test(file)) fs.rmSync(path.join(MODULES, file))
}

/** The Node of the lockfile for this architecture; null, with a word, where npm cannot get it. */
function fetchNode(arch: string): string | null {
  const name = `node-linux-${arch}` as const
  const folder = path.join(BUILD, name)
  const entry = Object.entries(lock.packages).find(([at]) => at === `node_modules/${name}`)
  // npm installs for another architecture than its own only what is optional.
  const optionalDependencies = { [name]: entry?.[1].version }
  const root = { name: 'node-of-the-archive', version, optionalDependencies }
  fs.mkdirSync(folder)
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(root))
  const packages = { '': root, ...Object.fromEntries(entry ? [entry] : []) }
  fs.writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }))
  run('npm', ['ci', `--cpu=${arch}`, '--os=linux', '--ignore-scripts', '--prefer-offline'], folder)
  const node = path.join(folder, 'node_modules', name)
  if (fs.existsSync(node)) return node
  console.error(`${name} cannot be installed: nothing is made for it`)
  return null
}

/** All that a machine of this architecture needs, but the libraries of C and C++. */
function makeTree(tree: string, arch: string, node: string): void {
  fs.cpSync(PROGRAM, tree, { recursive: true })
  fs.rmSync(path.join(tree, 'npm-shrinkwrap.json'))
  const binaries = path.join(tree, 'node_modules/better-sqlite3/prebuilds')
  for (const file of files(binaries)) if (file !== `linux-${arch}.node`) fs.rmSync(path.join(binaries, file))
  fs.mkdirSync(path.join(tree, 'bin'))
  fs.copyFileSync(path.join(node, 'bin/node'), path.join(tree, 'bin/node'))
  fs.copyFileSync(path.join(node, 'LICENSE'), path.join(tree, 'bin/LICENSE.node'))
  fs.copyFileSync(path.join(import.meta.dirname, 'admin-mirror.sh'), path.join(tree, 'bin/admin-mirror'))
  fs.chmodSync(path.join(tree, 'bin/admin-mirror'), 0o755)
  // A checkout made under a strict umask has files for its owner alone.
  run('chmod', ['-R', 'u=rwX,go=rX', tree], BUILD)
}

function packTree(tree: string): string {
  const name = path.basename(tree)
  const same = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
    `--mtime=@${epoch}`,
  ]
  const file = `${tree}.tar`
  run('tar', ['--format=gnu', ...same, '-cf', file, name], BUILD)
  run('gzip', ['-n', '-f', file], BUILD)
  return `${file}.gz`
}

/** What belongs to the project: no file that only lies in this folder. */
function tracked(...patterns: string[]): string[] {
  return run('git', ['ls-files', '--', ...patterns], ROOT)
    .split('\n')
    .filter((file) => file !== '')
}

function copy(from: string, to: string): void {
  fs.mkdirSync(path.dirname(path.join(PROGRAM, to)), { recursive: true })
  fs.copyFileSync(path.join(ROOT, from), path.join(PROGRAM, to))
}

function writeJson(name: string, value: unknown): void {
  fs.writeFileSync(path.join(PROGRAM, name), `${JSON.stringify(value, null, 2)}\n`)
}
