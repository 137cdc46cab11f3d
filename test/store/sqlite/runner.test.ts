import fs from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError, MirrorLostError } from '../../../src/errors.ts'
import { exec } from '../../../src/store/core/sql.ts'
import { runnerOn } from '../../../src/store/sqlite/runner.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

const write = () => exec([`INSERT INTO sync_settings VALUES ('written', '')`])

const WRITTEN = `SELECT count(*) FROM sync_settings WHERE name = 'written'`

const LOCKED = /locked by another process.*see which program has it open/

// Another connection holds the lock, what is slept goes by, and the time of day is set back as fast.
it.each<[what: string, happens: 'free' | 'stop' | null, afterMs: number, waitedMs: number]>([
  ['is tried again until the lock is free', 'free', 150, 150],
  ['is given up after 30 seconds, with nothing written', null, 0, 30_000],
  ['is given up two seconds after the signal to stop', 'stop', 5000, 7000],
])('a transaction on a locked mirror %s', async (_what, happens, afterMs, waitedMs) => {
  const { connection, file, value, clock } = openTestMirror()
  // The real time that SQLite itself waits is not part of the test.
  connection.pragma('busy_timeout = 0')
  const other = new Database(file).exec('BEGIN IMMEDIATE')
  onTestFinished(() => void other.close())
  const stop = new AbortController()
  const begun = clock.now()
  const waited = () => clock.now() - begun
  const sleep = async (ms: number) => {
    await clock.sleep(ms)
    // A wait without an end would not even let the test run into its time limit.
    if (waited() > 100_000) throw new Error('the wait does not end')
    if (waited() !== afterMs) return
    if (happens === 'free') other.exec('COMMIT')
    else stop.abort()
  }
  const { writing } = runnerOn(connection, { now: () => 0, elapsed: clock.now, sleep, signal: stop.signal })

  if (happens === 'free') await writing(write)
  else await expect(writing(write)).rejects.toThrow(LOCKED)
  expect([waited(), value(WRITTEN)]).toEqual([waitedMs, happens === 'free' ? 1 : 0])
  // After a signal, all of them together wait no longer.
  if (happens === 'stop') await expect(writing(write)).rejects.toThrow(MirrorError)
  expect(waited()).toBe(waitedMs)
})

/** Puts another file in the place of one. */
function replace(file: string): void {
  fs.writeFileSync(`${file}.new`, 'rows')
  fs.renameSync(`${file}.new`, file)
}

describe('a file in use', () => {
  it.each<[string, string, (file: string) => void, RegExp]>([
    ['is deleted', '', (file) => fs.rmSync(file), /deleted or moved away.*put it back/],
    ['is replaced', '', replace, /replaced by another file/],
    ['is emptied', '', (file) => fs.truncateSync(file), /was emptied/],
    ['loses its -wal', '-wal', (file) => fs.rmSync(file), /-wal was deleted or moved away/],
    ['gets another -shm', '-shm', replace, /-shm was replaced/],
  ])('is lost for its process when it %s', async (_what, suffix, change, message) => {
    const { connection, file, clock } = openTestMirror()
    const { reading, writing } = runnerOn(connection, { ...clock, signal: new AbortController().signal })
    await writing(write)

    change(file + suffix)
    clock.advance(1000)

    for (const task of [() => writing(write), () => reading(write())]) {
      await expect(task()).rejects.toThrow(MirrorLostError)
      await expect(task()).rejects.toThrow(message)
    }
  })
})
