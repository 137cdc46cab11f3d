import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createOwners, type Owners, ownersFolder } from '../../src/mirror/owners.ts'
import { ACME } from '../helpers/jobs.ts'
import { openTestMirror, type TestMirror } from '../helpers/test-mirror.ts'

const HOUR_MS = 3_600_000

// Within one process SQLite itself keeps the locks of different connections apart, as it does between processes.
function ownersOf({ connection }: TestMirror, name: string, file: string, now = Date.now): Owners {
  const owners = createOwners({ connection, file, name, now })
  onTestFinished(() => owners.close())
  return owners
}

describe('the owner of a job', () => {
  it('is one alone, until it lets go', () => {
    const test = openTestMirror()
    const first = ownersOf(test, 'first', test.file)
    const second = ownersOf(test, 'second', test.file)

    expect(first.take(ACME.id, 'orders')).toEqual({ taken: true })
    expect(second.take(ACME.id, 'orders')).toEqual({ taken: false, owner: 'first' })
    expect(first.take(ACME.id, 'orders')).toEqual({ taken: false, owner: 'first' })
    first.release(ACME.id, 'orders')
    expect(second.take(ACME.id, 'orders')).toEqual({ taken: true })
  })

  it('is followed at once when it is gone', () => {
    const test = openTestMirror()
    const first = createOwners({ connection: test.connection, file: test.file, name: 'first', now: Date.now })
    first.take(ACME.id, 'orders')

    first.close()

    expect(ownersOf(test, 'second', test.file).take(ACME.id, 'orders')).toEqual({ taken: true })
  })

  it('may take again what it could not let go of in the mirror', () => {
    const test = openTestMirror()
    const owners = ownersOf(test, 'first', test.file)
    owners.take(ACME.id, 'orders')
    test.connection.exec(
      "CREATE TRIGGER full BEFORE UPDATE ON sync_jobs BEGIN SELECT RAISE(FAIL, 'full'); END",
    )
    expect(() => owners.release(ACME.id, 'orders')).toThrow('full')
    test.connection.exec('DROP TRIGGER full')

    expect(owners.take(ACME.id, 'orders')).toEqual({ taken: true })
  })

  it('lets go only of what is its own', () => {
    const test = openTestMirror()
    const first = ownersOf(test, 'first', test.file)
    const second = ownersOf(test, 'second', test.file)
    second.take(ACME.id, 'orders')

    first.release(ACME.id, 'orders')

    expect(first.take(ACME.id, 'orders')).toEqual({ taken: false, owner: 'second' })
  })

  it('is the same by whatever link the mirror is reached', () => {
    const test = openTestMirror()
    const link = path.join(path.dirname(test.file), 'link.db')
    fs.symlinkSync(test.file, link)
    ownersOf(test, 'first', test.file).take(ACME.id, 'orders')

    const other = ownersOf(test, 'second', link)

    expect(other.take(ACME.id, 'orders')).toEqual({ taken: false, owner: 'first' })
  })
})

describe('the lock files of processes that were killed', () => {
  it('are taken away by a later one, those of the living and the young are not', () => {
    const test = openTestMirror()
    ownersOf(test, 'alive', test.file)
    const folder = ownersFolder(test.file)
    // As a process leaves them that was killed.
    fs.writeFileSync(path.join(folder, 'killed'), '')
    fs.copyFileSync(path.join(folder, 'alive-journal'), path.join(folder, 'killed-journal'))

    ownersOf(test, 'soon-after', test.file)
    const soonAfter = fs.readdirSync(folder)
    ownersOf(test, 'much-later', test.file, () => Date.now() + 2 * HOUR_MS)

    expect(soonAfter).toEqual(expect.arrayContaining(['alive', 'killed', 'soon-after']))
    expect(fs.readdirSync(folder).filter((name) => name.startsWith('killed'))).toEqual([])
    expect(fs.readdirSync(folder)).toEqual(expect.arrayContaining(['alive', 'soon-after', 'much-later']))
  })
})
