import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'

const ROOT = path.resolve(import.meta.dirname, '..')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-bin-'))

afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** A new folder, as other users may find it. */
function made(name: string, mode: number): string {
  const at = path.join(folder, name)
  fs.mkdirSync(at, { recursive: true })
  fs.chmodSync(at, mode)
  return at
}

function runWith(env: Record<string, string>, cwd = folder): void {
  const { status } = spawnSync(
    path.join(ROOT, 'node_modules/.bin/node'),
    [path.join(ROOT, 'src/bin.js'), '--version'],
    { env, cwd },
  )
  expect(status).toBe(0)
}

const isEmpty = (at: string) => fs.readdirSync(at).length === 0

describe('compiled code is kept for the next start', () => {
  it('in a folder of this user alone, and never in the temporary one, where others can put theirs', () => {
    const home = made('home', 0o755)
    const temporary = made('tmp', 0o1777)
    made('tmp/node-compile-cache', 0o777)

    runWith({ HOME: home, TMPDIR: temporary })

    expect(isEmpty(path.join(temporary, 'node-compile-cache'))).toBe(true)
    const cache = path.join(home, '.cache/admin-mirror')
    expect(isEmpty(cache)).toBe(false)
    expect(fs.statSync(cache).mode & 0o777).toBe(0o700)
  })

  it.each<[name: string, prepare: (home: string) => void]>([
    ['a folder that others may write', (home) => made(`${home}/.cache/admin-mirror`, 0o777)],
    [
      'a link',
      (home) =>
        fs.symlinkSync(made(`${home}/elsewhere`, 0o700), path.join(folder, home, '.cache/admin-mirror')),
    ],
    ['a folder in a home that others may write', (home) => made(home, 0o777)],
    ['a folder that others may exchange', (home) => made(`${home}/.cache`, 0o777)],
  ])('nowhere where it would be %s', (name, prepare) => {
    const home = name.replaceAll(' ', '-')
    made(home, 0o755)
    made(`${home}/.cache`, 0o755)
    prepare(home)

    runWith({ HOME: path.join(folder, home), TMPDIR: folder })

    const cache = path.join(folder, home, '.cache/admin-mirror')
    expect(!fs.existsSync(cache) || isEmpty(cache)).toBe(true)
  })

  it('nowhere in a home that others may exchange, and not where a command is called', () => {
    made('shared', 0o777)
    const home = made('shared/home', 0o755)

    runWith({ HOME: home, XDG_CACHE_HOME: '.' }, made('called', 0o755))

    expect([isEmpty(home), isEmpty(path.join(folder, 'called'))]).toEqual([true, true])
  })

  it('where the operator says', () => {
    const named = made('named', 0o700)

    runWith({ HOME: folder, NODE_COMPILE_CACHE: named })

    expect(isEmpty(named)).toBe(false)
  })
})
