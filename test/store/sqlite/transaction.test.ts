import Database from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MirrorError } from '../../../src/errors.ts'
import { createLockWait, createTransact } from '../../../src/store/sqlite/transaction.ts'
import { createClock } from '../../helpers/clock.ts'
import { openTestMirror, type TestMirror } from '../../helpers/test-mirror.ts'

/** Another connection that holds the write lock. */
function lock(test: TestMirror): Database.Database {
  const other = new Database(test.file)
  onTestFinished(() => {
    other.close()
  })
  return other.exec('BEGIN IMMEDIATE')
}

function write(test: TestMirror): () => void {
  return () => test.connection.exec(`INSERT INTO sync_settings VALUES ('written', '')`)
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

    await transact(write(test))

    expect(waits).toHaveLength(3)
    expect(test.value(WRITTEN)).toBe(1)
  })

  it('is given up soon after the signal to stop', async () => {
    const test = openTestMirror()
    lock(test)
    const { connection, clock } = test
    connection.pragma('busy_timeout = 0')
    const stop = new AbortController()
    const begun = clock.now()
    const sleep = async (ms: number) => {
      clock.advance(ms)
      if (clock.now() - begun === 5000) stop.abort()
    }
    const options = { connection, now: clock.now, sleep, signal: stop.signal }
    const transact = createTransact(options)

    await expect(transact(write(test))).rejects.toThrow(MirrorError)
    await expect(transact(write(test))).rejects.toThrow(MirrorError)

    // Two seconds for all of them together.
    expect(clock.now() - begun).toBe(7000)
  })

  it('is given up after 30 seconds, with nothing written', async () => {
    const clock = createClock()
    const test = openTestMirror({ clock })
    lock(test)
    const begun = clock.now()
    const { connection } = test
    // The real time that SQLite itself waits is not part of the test.
    connection.pragma('busy_timeout = 0')
    const transact = createTransact({ connection, ...clock, signal: NEVER })

    const writing = transact(write(test))

    await expect(writing).rejects.toThrow(MirrorError)
    await expect(writing).rejects.toThrow(/locked by another process.*see which program has it open/)
    expect(clock.now() - begun).toBeGreaterThanOrEqual(30_000)
    expect(clock.now() - begun).toBeLessThan(31_000)
    expect(test.value(WRITTEN)).toBe(0)
  })
})

describe('a transaction that fails', () => {
  it('is rolled back, and not retried', async () => {
    const test = openTestMirror()
    const { connection, clock } = test
    let tried = 0
    const transact = createTransact({ connection, ...clock, signal: NEVER })

    const writing = transact(() => {
      tried++
      write(test)()
      throw new RangeError('a mistake in the program')
    })

    await expect(writing).rejects.toThrow(RangeError)
    expect(tried).toBe(1)
    expect(test.value(WRITTEN)).toBe(0)
  })
})

/** A file that is locked for some time, by a process that announces its work for some time. Milliseconds. */
function lockedForLong({
  lockedFor,
  workFor,
  stopAfter,
}: {
  lockedFor: number
  workFor: number
  stopAfter?: number
}) {
  const clock = createClock()
  const begun = clock.now()
  const passed = () => clock.now() - begun
  const stop = new AbortController()
  const reports: string[] = []
  const sleep = async (ms: number) => {
    clock.advance(ms)
    if (stopAfter !== undefined && passed() >= stopAfter) stop.abort()
  }
  let tries = 0
  const task = () => {
    tries++
    if (passed() >= lockedFor) return 'written'
    throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
  }
  const patience = {
    now: clock.now,
    sleep,
    signal: stop.signal,
    report: (message: string) => reports.push(message),
  }
  const wait = createLockWait('mirror.db', patience, () =>
    passed() < workFor ? 'process 7 changes orders' : null,
  )
  return { writing: wait(task), reports, passed, tries: () => tries }
}

describe('a lock that another process holds for long work', () => {
  it('is waited for without a limit, reported once, and not tried meanwhile', async () => {
    const { writing, reports, tries } = lockedForLong({ lockedFor: 3_600_000, workFor: 3_600_000 })

    expect(await writing).toBe('written')
    expect(reports).toEqual(['waiting for the mirror: process 7 changes orders'])
    expect(tries()).toBeLessThan(5)
  })

  it('is waited for 30 seconds more after the work', async () => {
    const { writing, passed } = lockedForLong({ lockedFor: Number.POSITIVE_INFINITY, workFor: 100_000 })

    await expect(writing).rejects.toThrow(MirrorError)
    expect(passed()).toBeGreaterThanOrEqual(130_000)
    expect(passed()).toBeLessThan(131_000)
  })

  it('is waited for at most two seconds after the signal to stop', async () => {
    const { writing, passed } = lockedForLong({ lockedFor: 3_600_000, workFor: 3_600_000, stopAfter: 60_000 })

    await expect(writing).rejects.toThrow(MirrorError)
    expect(passed()).toBeLessThan(62_200)
  })
})
