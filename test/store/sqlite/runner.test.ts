import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError, MirrorLostError } from '../../../src/errors.ts'
import { exec } from '../../../src/store/core/sql.ts'
import { runnerOn } from '../../../src/store/sqlite/runner.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'

const write = () => exec([`INSERT INTO sync_settings VALUES ('written', '')`])

const WRITTEN = `SELECT count(*) FROM sync_settings WHERE name = 'written'`

/** A mirror that another connection has locked, and a clock that moves by what is slept. `onSleep` gets how long that was so far. */
function locked(onSleep: (ms: number, free: () => void, stop: () => void) => void = () => {}) {
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
    onSleep(
      waited(),
      () => other.exec('COMMIT'),
      () => stop.abort(),
    )
  }
  const { writing } = runnerOn(connection, { now: clock.now, sleep, signal: stop.signal })
  return { write: () => writing(write), waited, written: () => value(WRITTEN) }
}

describe('a transaction on a mirror that another process has locked', () => {
  it('is tried again until the lock is free', async () => {
    const test = locked((ms, free) => {
      if (ms === 150) free()
    })

    await test.write()

    expect([test.waited(), test.written()]).toEqual([150, 1])
  })

  it('is given up after 30 seconds, with nothing written', async () => {
    const test = locked()

    await expect(test.write()).rejects.toThrow(/locked by another process.*see which program has it open/)

    expect([test.waited(), test.written()]).toEqual([30_000, 0])
  })

  it('is given up two seconds after the signal to stop, for all of them together', async () => {
    const test = locked((ms, _free, stop) => {
      if (ms === 5000) stop()
    })

    for (const again of [test.write, test.write]) await expect(again()).rejects.toThrow(MirrorError)

    expect(test.waited()).toBe(7000)
  })
})

/** Puts another file in the place of one. */
function replace(file: string): void {
  fs.writeFileSync(`${file}.new`, 'rows')
  fs.renameSync(`${file}.new`, file)
}

describe('a file in use', () => {
  it.each<[string, string, (file: string) => void, RegExp]>([
    ['is deleted', '', (file) => fs.rmSync(file), /deleted or moved away.*put it back/],
    ['is moved', '', (file) => fs.renameSync(file, `${file}.old`), /deleted or moved away/],
    ['is deleted with its folder', '', deleteFolder, /deleted or moved away/],
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

function deleteFolder(file: string): void {
  fs.rmSync(path.dirname(file), { recursive: true })
}
