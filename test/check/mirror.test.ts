import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import { checkFileSystem, checkFree, checkMirrorFile, findingOf } from '../../src/check/mirror.ts'
import { MirrorError, UsageError } from '../../src/errors.ts'
import { APPLICATION_ID } from '../../src/store/sqlite/file/open.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { openTestMirror } from '../helpers/test-mirror.ts'

const PAGE_BYTES = 4096

function newMirror(): string {
  const mirror = openTestMirror()
  mirror.close()
  return mirror.file
}

/** The first database page of a table becomes one of no kind. */
function damagedMirror(table: string): string {
  const mirror = openTestMirror()
  const page = Number(mirror.value('SELECT rootpage FROM sqlite_schema WHERE name = ?', table))
  mirror.close()
  const handle = fs.openSync(mirror.file, 'r+')
  fs.writeSync(handle, Buffer.alloc(PAGE_BYTES, 7), 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  fs.closeSync(handle)
  return mirror.file
}

function mirrorWithoutTables(): string {
  const file = path.join(tempFolder(), 'mirror.db')
  const connection = new Database(file)
  connection.pragma(`application_id = ${APPLICATION_ID}`)
  connection.close()
  return file
}

function mirrorWithTwoNames(): string {
  const file = newMirror()
  fs.linkSync(file, `${file}.second`)
  return file
}

it.each<[what: string, make: () => string, exitCode: number, message: RegExp]>([
  ['is well', newMirror, 0, /can be written; it is not damaged \(quick_check\)$/],
  ['is damaged', () => damagedMirror('sync_rejects'), 4, /mirror\.db is damaged: /],
  [
    'is damaged where it is read',
    () => damagedMirror('sync_settings'),
    4,
    /mirror\.db is damaged \(.*Restore a copy/,
  ],
  ['has no tables', mirrorWithoutTables, 0, /mirror\.db is empty; the first sync fills it$/],
  ['has two names', mirrorWithTwoNames, 4, /mirror\.db has 2 names \(hard links\)/],
  ['cannot be made', () => path.join(newMirror(), 'mirror.db'), 4, /mirror\.db is no folder$/],
])('a mirror that %s is a finding', (_what, make, exitCode, message) => {
  const [finding] = checkMirrorFile(make(), null, []).findings

  expect(finding).toMatchObject({ exit_code: exitCode, message: expect.stringMatching(message) })
})

it.each<[what: string, error: Error, exitCode: number, message: string]>([
  ['what was typed', new UsageError('another key'), 2, 'another key'],
  ['a mirror that is damaged', new MirrorError('it is damaged'), 4, 'it is damaged'],
  ...['EACCES', 'EPERM', 'EROFS'].map((code): [string, Error, number, string] => [
    `a folder (${code})`,
    Object.assign(new Error('access'), { code }),
    4,
    `its folder cannot be written by this user (${code})`,
  ]),
  ['anything else', Object.assign(new Error('no more files'), { code: 'EMFILE' }), 4, 'no more files'],
])('an error of %s is a finding', (_what, error, exitCode, message) => {
  expect(findingOf(error)).toMatchObject({ name: 'mirror', state: 'fail', exit_code: exitCode, message })
})

it.each<[free: number, size: number, state: string, message: string]>([
  [33_554_431, 0, 'fail', '33.6 MB free on its disk'],
  [33_554_432, 33_554_432, 'ok', '33.6 MB free on its disk, and it has 33.6 MB'],
  [33_554_432, 33_554_433, 'warn', '33.6 MB free on its disk, and it has 33.6 MB'],
])('a disk with %i bytes free, and a mirror of %i: %s', (free, size, state, message) => {
  expect(checkFree(free, size)).toMatchObject({
    state,
    message,
    exit_code: state === 'fail' ? 4 : 0,
  })
})

it.each<[type: number, state: string, message: string]>([
  [26_985, 'warn', '(NFS)'],
  [61_267, 'ok', 'on a file system of this machine'],
])('a file system of kind %i: %s', (type, state, message) => {
  expect(checkFileSystem(type)).toMatchObject({ state, message: expect.stringContaining(message) })
})
