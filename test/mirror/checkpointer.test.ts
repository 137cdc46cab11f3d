import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type LastTry, whoMoves } from '../../src/mirror/checkpointer.ts'
import { jobOf } from '../helpers/jobs.ts'
import { tempFolder } from '../helpers/temp-folder.ts'
import { beginTestWalk, openTestMirror } from '../helpers/test-mirror.ts'

function linkTo(file: string): string {
  const link = path.join(tempFolder(), 'link.db')
  fs.symlinkSync(file, link)
  return link
}

const MB = 1024 * 1024
const LAST: LastTry = { at: 50_000, bytes: 20 * MB }

/** A thousand orders of 8 kB each. */
function thousandOrders(from: number): string[] {
  return Array.from({ length: 1000 }, (_, id) => `{"id":${from + id},"a":"${'x'.repeat(8000)}"}`)
}

describe('pages of the log that are not in the file yet', () => {
  it.each<[string, number, number, LastTry | null, number, ReturnType<typeof whoMoves>]>([
    ['are left there while they are few', 1699, 16 * MB, null, 60_000, 'nobody'],
    [
      'are left there, and written to the disk, before they are enough',
      1700,
      7 * MB,
      null,
      60_000,
      'nobody yet',
    ],
    ['are not moved before they are enough', 1999, 16 * MB, null, 60_000, 'nobody yet'],
    ['are moved at once', 2000, 8 * MB, null, 60_000, 'here'],
    ['are moved at once, whatever was tried', 4000, 16 * MB, LAST, 50_001, 'here'],
    ['are moved by a thread from a log that is large', 5000, 17 * MB, null, 60_000, 'thread'],
    ['are left to whoever reads', 6000, 30 * MB, LAST, 54_999, 'nobody'],
    ['are tried again after a while', 5000, 20 * MB, LAST, 55_000, 'thread'],
    ['are tried again when there are many more', 9000, 36 * MB, LAST, 50_001, 'thread'],
    ['may be none, and the log is cut all the same', 0, 17 * MB, null, 60_000, 'thread'],
  ])('%s', (_what, pages, bytes, last, now, expected) => {
    expect(whoMoves({ pages, bytes }, last, now)).toBe(expected)
  })

  it.each([
    ['a mirror', (file: string) => file],
    ['a mirror behind a link', linkTo],
  ])('do not gather while nobody reads %s', async (_what, way) => {
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

  it('are moved by a thread once the reader ends who held them back, and nothing fails while they cannot be', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const reader = new Database(test.file, { readonly: true })
    onTestFinished(() => {
      reader.close()
    })
    const threads: unknown[] = []
    const onThread = (thread: unknown) => threads.push(thread)
    process.on('worker', onThread)
    onTestFinished(() => {
      process.off('worker', onThread)
    })
    reader.exec('BEGIN; SELECT count(*) FROM sync_runs')
    for (let count = 0; count < 4; count++) await saveItems(...thousandOrders(count * 1000))
    const before = fs.statSync(test.file).size
    const threadsBefore = threads.length
    reader.exec('COMMIT')

    const deadline = Date.now() + 30_000
    while (fs.statSync(`${test.file}-wal`).size > 5_000_000 && Date.now() < deadline) {
      test.clock.advance(10_000)
      await saveItems('{"id":1}')
      await sleep(50)
    }

    expect(before).toBeLessThan(10_000_000)
    expect(threads.length).toBeGreaterThan(threadsBefore)
    expect(fs.statSync(test.file).size).toBeGreaterThan(30_000_000)
    expect(fs.statSync(`${test.file}-wal`).size).toBeLessThan(5_000_000)
    expect(test.value('SELECT count(*) FROM orders')).toBe(4000)
    expect(test.value('PRAGMA quick_check')).toBe('ok')
  })
})
