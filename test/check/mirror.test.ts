import { expect, it } from 'vitest'
import { checkFileSystem, checkFree, findingOf } from '../../src/check/mirror.ts'
import { MirrorError, UsageError } from '../../src/errors.ts'

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
