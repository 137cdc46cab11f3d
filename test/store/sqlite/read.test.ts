import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/errors.ts'
import { queryFile } from '../../../src/store/sqlite/read.ts'
import { CAN_BE_REFUSED, NOBODY, openElsewhere } from '../../helpers/other-process.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

// What else `query` prints and refuses: test/cli/commands/reading.test.ts.

async function filled() {
  const test = openTestMirror()
  await (await begin(test)).page('{"id":1}')
  return (sql: string) => queryFile(test.connection, sql, new Map())
}

it('a reader tells columns of one name apart', async () => {
  const query = await filled()

  expect(query('SELECT id, id FROM orders').columns).toEqual(['id', 'id_2'])
})

it.each([
  'DELETE FROM orders',
  'PRAGMA user_version = 999',
  'PRAGMA journal_mode = DELETE',
  `ATTACH 'other.db' AS other`,
  `VACUUM INTO 'other.db'`,
  'BEGIN IMMEDIATE',
  'INSERT INTO orders (id) VALUES (1) RETURNING id',
  'SELECT 1; SELECT 2',
  'SELECT nothing FROM orders',
  '',
])('a reader refuses SQL that does not only read: %s', async (sql) => {
  const query = await filled()

  expect(() => query(sql)).toThrow(UsageError)
})

describe.runIf(CAN_BE_REFUSED)('a reader of another user', () => {
  it('reads while a sync keeps the files of WAL mode', async () => {
    const { file } = openTestMirror()
    for (const suffix of ['', '-wal', '-shm']) fs.chmodSync(file + suffix, 0o644)

    expect(await openElsewhere(file, 'read', NOBODY)).toBe('done')
  })

  it.each([
    [
      '',
      /^MirrorError: .* cannot be read: its owner has not given this user the right\. .* snapshot copy\.db$/,
    ],
    ['-shm', /^MirrorError: .* cannot be read: a database in WAL mode needs .* snapshot copy\.db$/],
  ])('is told what to ask its owner for where it may not read FILE%s', async (closed, told) => {
    const { file } = openTestMirror()
    for (const suffix of ['', '-wal', '-shm']) fs.chmodSync(file + suffix, suffix === closed ? 0o600 : 0o644)

    expect(await openElsewhere(file, 'read', NOBODY)).toMatch(told)
  })

  it('creates nothing beside a mirror that it may not write, though it may write to the folder', async () => {
    const { file, close } = openTestMirror()
    close()
    fs.chmodSync(file, 0o644)
    fs.chmodSync(path.dirname(file), 0o777)
    const before = fs.readdirSync(path.dirname(file))

    expect(await openElsewhere(file, 'read', NOBODY)).toMatch(
      /^MirrorError: .*WAL mode needs write access to the file and to its folder, or a sync that is running/,
    )
    expect(fs.readdirSync(path.dirname(file))).toEqual(before)
  })
})
