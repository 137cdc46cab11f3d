import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { tempFolder } from './helpers/temp-folder.ts'

// npm run package makes what people install.

const ROOT = path.resolve(import.meta.dirname, '..')
const TARBALL = path.join(ROOT, `build/admin-mirror-${manifest.version}.tgz`)

function run(program: string, args: readonly string[], cwd = ROOT): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

function makePackage(): Buffer {
  run('npm', ['run', '--silent', 'package'])
  return fs.readFileSync(TARBALL)
}

it('the package has the same bytes twice, and neither TypeScript, tests, a Node nor a token in it', () => {
  expect(makePackage().equals(makePackage())).toBe(true)

  const files = run('tar', ['-tzf', TARBALL]).split('\n')
  expect(files).toContain('package/dist/bin.js')
  expect(
    files.filter((file) => /\.ts$|\btest\b|node_modules|secrets|config\/admin-mirror\.yaml/.test(file)),
  ).toEqual([])
  const lock = run('tar', ['-xzOf', TARBALL, 'package/npm-shrinkwrap.json'])
  expect(lock).not.toMatch(/node-linux|"vitest"/)
})

it('the package is installed under a prefix of its own, and its demo and a snapshot run', () => {
  makePackage()
  const prefix = tempFolder()
  const folder = tempFolder()

  run('npm', ['install', '--global', '--prefix', prefix, '--prefer-offline', TARBALL])

  const program = path.join(prefix, 'bin/admin-mirror')
  expect(run(program, ['--version'], folder)).toBe(`${manifest.version}\n`)
  const [, mirror = ''] = /sqlite3 (\S+)/.exec(run(program, ['demo'], folder)) ?? []
  // It is written by a thread, whose program is a file of its own.
  run(program, ['snapshot', 'copy.db', '--database', mirror], folder)
  fs.rmSync(path.dirname(mirror), { recursive: true })
  expect(fs.existsSync(path.join(folder, 'copy.db'))).toBe(true)
})
