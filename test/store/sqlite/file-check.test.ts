import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { MirrorLostError } from '../../../src/errors.ts'
import { createFileCheck } from '../../../src/store/sqlite/transaction.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'

function makeFile(name = 'mirror.db'): string {
  const file = path.join(tempFolder(), name)
  fs.writeFileSync(file, 'rows')
  return file
}

describe('a file in use', () => {
  it.each<[string, (file: string) => void]>([
    ['when it is written', (file) => fs.appendFileSync(file, 'more')],
    ['when files appear beside it', (file) => fs.writeFileSync(`${file}-wal`, '')],
    ['when its rights change', (file) => fs.chmodSync(file, 0o600)],
  ])('is the same %s', (_what, change) => {
    const file = makeFile()
    const assertSameFile = createFileCheck(file)

    change(file)

    expect(assertSameFile).not.toThrow()
  })

  it.each<[string, (file: string) => void, RegExp]>([
    ['deleted', (file) => fs.rmSync(file), /deleted or moved away.*put it back/],
    ['moved', (file) => fs.renameSync(file, `${file}.old`), /deleted or moved away/],
    [
      'deleted with its folder',
      (file) => fs.rmSync(path.dirname(file), { recursive: true }),
      /deleted or moved away/,
    ],
    ['replaced', (file) => fs.renameSync(makeFile(), file), /replaced by another file/],
    ['emptied', (file) => fs.truncateSync(file), /was emptied/],
  ])('is lost when it is %s', (_what, change, message) => {
    const file = makeFile()
    const assertSameFile = createFileCheck(file)

    change(file)

    expect(assertSameFile).toThrow(MirrorLostError)
    expect(assertSameFile).toThrow(message)
  })

  it.each<[string, (file: string) => void]>([
    ['deleted', (file) => fs.rmSync(file)],
    ['replaced', (file) => fs.renameSync(makeFile(), file)],
  ])('is lost when its -wal or -shm is %s', (_what, change) => {
    for (const suffix of ['-wal', '-shm']) {
      const file = makeFile()
      fs.writeFileSync(file + suffix, '')
      const assertSameFile = createFileCheck(file)

      change(file + suffix)

      expect(assertSameFile).toThrow(MirrorLostError)
      expect(assertSameFile).toThrow(`${file}${suffix} was deleted or replaced`)
    }
  })

  it('is the same after it was put back', () => {
    const file = makeFile()
    const assertSameFile = createFileCheck(file)

    fs.renameSync(file, `${file}.old`)
    fs.renameSync(`${file}.old`, file)

    expect(assertSameFile).not.toThrow()
  })

  it('is the target of a link', () => {
    const [file, other] = [makeFile(), makeFile('other.db')]
    const link = path.join(tempFolder(), 'link.db')
    fs.symlinkSync(file, link)
    const assertSameFile = createFileCheck(link)

    expect(assertSameFile).not.toThrow()
    fs.rmSync(link)
    fs.symlinkSync(other, link)

    expect(assertSameFile).toThrow(/replaced/)
  })
})
