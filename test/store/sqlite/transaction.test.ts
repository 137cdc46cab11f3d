import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError, MirrorLostError } from '../../../src/errors.ts'
import { exec } from '../../../src/store/core/sql.ts'
import { createFileCheck, createTransact } from '../../../src/store/sqlite/transaction.ts'
import { createClock } from '../../helpers/clock.ts'
import { tempFolder } from '../../helpers/temp-folder.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

/** Another connection that holds the write lock. */
function lock(test: TestMirror): Database.Database {
  const other = new Database(test.file)
  onTestFinished(() => {
    other.close()
  })
  return other.exec('BEGIN IMMEDIATE')
}

const write = () => exec([`INSERT INTO sync_settings VALUES ('written', '')`])

/** A clock on which a wait without a deadline fails: it would not even let the test run into its time limit. */
function createBoundedClock() {
  const clock = createClock()
  let sleeps = 0
  const sleep = async (ms: number) => {
    sleeps++
    if (sleeps > 100_000) throw new Error('the wait does not end')
    clock.advance(ms)
  }
  return { ...clock, sleep }
}

const NEVER = new AbortController().signal

const WRITTEN = `SELECT count(*) FROM sync_settings WHERE name = 'written'`

describe('a transaction on a mirror that another process has locked', () => {
  it('is retried until the lock is free', async () => {
    const test = openTestMirror()
    const other = lock(test)
    const waits: number[] = []
    const sleep = async (ms: number) => {
      waits.push(ms)
      if (waits.length === 3) other.exec('COMMIT')
    }
    const { connection, clock } = test
    const transact = createTransact({
      connection,
      now: clock.now,
      sleep,
      signal: NEVER,
    })

    await transact(write)

    expect(waits).toHaveLength(3)
    expect(test.value(WRITTEN)).toBe(1)
  })

  it('is given up soon after the signal to stop', async () => {
    const clock = createBoundedClock()
    const test = openTestMirror({ clock })
    lock(test)
    const { connection } = test
    connection.pragma('busy_timeout = 0')
    const stop = new AbortController()
    const begun = clock.now()
    const sleep = async (ms: number) => {
      await clock.sleep(ms)
      if (clock.now() - begun === 5000) stop.abort()
    }
    const options = { connection, now: clock.now, sleep, signal: stop.signal }
    const transact = createTransact(options)

    await expect(transact(write)).rejects.toThrow(MirrorError)
    await expect(transact(write)).rejects.toThrow(MirrorError)

    // Two seconds for all of them together.
    expect(clock.now() - begun).toBe(7000)
  })

  it('is given up after 30 seconds, with nothing written', async () => {
    const clock = createBoundedClock()
    const test = openTestMirror({ clock })
    lock(test)
    const begun = clock.now()
    const { connection } = test
    // The real time that SQLite itself waits is not part of the test.
    connection.pragma('busy_timeout = 0')
    const transact = createTransact({ connection, ...clock, signal: NEVER })

    const writing = transact(write)

    await expect(writing).rejects.toThrow(MirrorError)
    await expect(writing).rejects.toThrow(/locked by another process.*see which program has it open/)
    expect(clock.now() - begun).toBeGreaterThanOrEqual(30_000)
    expect(clock.now() - begun).toBeLessThan(31_000)
    expect(test.value(WRITTEN)).toBe(0)
  })
})

function makeFile(name = 'mirror.db'): string {
  const file = path.join(tempFolder(), name)
  fs.writeFileSync(file, 'rows')
  return file
}

describe('a file in use', () => {
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

  it('is lost when its -wal or -shm is deleted or replaced', () => {
    for (const suffix of ['-wal', '-shm'])
      for (const change of [fs.rmSync, (name: string) => fs.renameSync(makeFile(), name)]) {
        const file = makeFile()
        fs.writeFileSync(file + suffix, '')
        const assertSameFile = createFileCheck(file)

        change(file + suffix)

        expect(assertSameFile).toThrow(MirrorLostError)
        expect(assertSameFile).toThrow(`${file}${suffix} was `)
      }
  })
})
