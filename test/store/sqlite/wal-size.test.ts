import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { jobOf } from '../../helpers/jobs.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../../helpers/test-mirror.ts'

function linkTo(file: string): string {
  const link = path.join(tempFolder(), 'link.db')
  fs.symlinkSync(file, link)
  return link
}

describe('the WAL', () => {
  it.each([
    ['a mirror', (file: string) => file],
    ['a mirror behind a link', linkTo],
  ])('is moved into the file while it is written: %s', async (_what, way) => {
    const file = path.join(tempFolder(), 'mirror.db')
    fs.writeFileSync(file, '')
    const test = openTestMirror({ file: way(file) })
    const { saveItems } = await beginTestWalk(test, jobOf())

    for (let page = 0; page < 60; page++)
      await saveItems(
        ...Array.from({ length: 50 }, (_, id) => `{"id":${page * 50 + id},"a":"${'x'.repeat(4000)}"}`),
      )

    expect(fs.statSync(`${file}-wal`).size).toBeLessThan(12_000_000)
    expect(fs.statSync(file).size).toBeGreaterThan(8_000_000)
  })
})
