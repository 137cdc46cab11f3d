import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { jobOf } from '../../helpers/jobs.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../../helpers/test-mirror.ts'

function linkTo(file: string): string {
  const link = path.join(tempFolder(), 'link.db')
  fs.symlinkSync(file, link)
  return link
}

/** A thousand orders of 8 kB each. */
function thousandOrders(from: number): string[] {
  return Array.from({ length: 1000 }, (_, id) => `{"id":${from + id},"a":"${'x'.repeat(8000)}"}`)
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

  it('grows while a reader needs it, and is short again once the reader has ended', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const reader = new Database(test.file, { readonly: true })
    onTestFinished(() => {
      reader.close()
    })
    reader.exec('BEGIN; SELECT count(*) FROM sync_runs')
    for (let count = 0; count < 4; count++) await saveItems(...thousandOrders(count * 1000))
    const held = fs.statSync(`${test.file}-wal`).size
    reader.exec('COMMIT')

    // One commit moves the database pages; the next one restarts the WAL, and cuts it.
    for (let commit = 0; commit < 2; commit++) await saveItems('{"id":1}')

    expect(held).toBeGreaterThan(30_000_000)
    expect(fs.statSync(`${test.file}-wal`).size).toBeLessThan(17_000_000)
    expect(test.value('SELECT count(*) FROM orders')).toBe(4000)
    expect(test.value('PRAGMA quick_check')).toBe('ok')
  })
})
