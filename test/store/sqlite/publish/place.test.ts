import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { withoutLinks } from '../../../../src/store/sqlite/publish/place.ts'
import { IS_ROOT, mustRun } from '../../../helpers/system.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'

const NOBODY = 65_534

describe('the place of a file', () => {
  it.each<[string, (folder: string) => string, string]>([
    ['of a file', () => 'file', 'file'],
    ['that is not there', () => 'none/deeper', 'none/deeper'],
    ['behind links', () => 'second', 'file'],
    ['behind a link to a folder', () => 'way/file', 'folder/file'],
    ['behind a link that leads nowhere', () => 'nowhere', 'none'],
    ['with a step back', (folder) => `../${path.basename(folder)}/file`, 'file'],
  ])('%s is without links', (_what, named, expected) => {
    const folder = fs.realpathSync(tempFolder())
    const at = (name: string) => path.join(folder, name)
    fs.writeFileSync(at('file'), '')
    fs.mkdirSync(at('folder'))
    fs.symlinkSync('file', at('first'))
    fs.symlinkSync(at('first'), at('second'))
    fs.symlinkSync('folder', at('way'))
    fs.symlinkSync('none', at('nowhere'))

    expect(withoutLinks(at(named(folder)))).toBe(at(expected))
  })

  it('of a circle of links is what was named', () => {
    const circle = path.join(tempFolder(), 'circle')
    fs.symlinkSync('circle', circle)

    expect(withoutLinks(circle)).toBe(circle)
  })
})

// Linux does not follow these links itself where fs.protected_symlinks is set; they are refused all the same.
describe.skipIf(!IS_ROOT)('in a folder that all may write to (needs root)', () => {
  it.each<[string, (folder: string) => string, boolean]>([
    ['a link of another user', (folder) => link(folder, NOBODY), true],
    ['a link of another user in the middle', (folder) => path.join(link(folder, NOBODY), 'deeper'), true],
    ['a link of this user', (folder) => link(folder, 0), false],
    ['a pipe of another user', (folder) => pipe(folder, NOBODY), true],
    ['a pipe of this user', (folder) => pipe(folder, 0), false],
  ])('%s is refused: %s', (_what, make, isRefused) => {
    const folder = tempFolder()
    fs.chmodSync(folder, 0o1777)
    const file = make(folder)

    if (isRefused)
      expect(() => withoutLinks(file)).toThrow(/of another user in a folder that others may write to/)
    else expect(() => withoutLinks(file)).not.toThrow()
  })

  it('a link of another user is refused where only the group may write, too', () => {
    const folder = tempFolder()
    fs.chmodSync(folder, 0o1770)

    expect(() => withoutLinks(link(folder, NOBODY))).toThrow(/of another user/)
  })

  it('a link of another user is followed in a folder of his own', () => {
    const folder = tempFolder()
    const file = link(folder, NOBODY)
    fs.chmodSync(folder, 0o777)
    fs.chownSync(folder, NOBODY, NOBODY)

    expect(withoutLinks(file)).not.toBe(file)
  })
})

function link(folder: string, uid: number): string {
  const file = path.join(folder, 'link')
  fs.symlinkSync(tempFolder(), file)
  fs.lchownSync(file, uid, uid)
  return file
}

function pipe(folder: string, uid: number): string {
  const file = path.join(folder, 'pipe')
  mustRun('mkfifo', file)
  fs.chownSync(file, uid, uid)
  return file
}
