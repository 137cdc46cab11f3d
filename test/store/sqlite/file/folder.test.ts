import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeFolder } from '../../../../src/store/sqlite/file/folder.ts'
import { tempFolder } from '../../../helpers/temp-folder.ts'

describe('a folder', () => {
  it('is made with those above it, and may be there already', () => {
    const folder = path.join(tempFolder(), 'a', 'b')

    makeFolder(folder)
    makeFolder(folder)

    expect(fs.statSync(folder).isDirectory()).toBe(true)
  })

  it.runIf(process.platform === 'linux')('is refused where none can be made, and not tried for ever', () => {
    expect(() => makeFolder('/proc/self/nothing/below')).toThrow()
  })
})
