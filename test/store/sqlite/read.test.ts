import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../../src/errors.ts'
import type { Rows } from '../../../src/store/core/query.ts'
import { queryFile } from '../../../src/store/sqlite/read.ts'
import { CAN_BE_REFUSED } from '../../helpers/other-process.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

async function filled() {
  const test = openTestMirror()
  await (await begin(test)).page('{"id":2,"a":9007199254740993}', '{"id":1, "a":1.0}')
  return (sql: string) => queryFile(test.connection, sql, new Map())
}

function all({ columns, batches }: Rows): unknown[] {
  return [columns, ...Array.from(batches as Iterable<Iterable<unknown>>, (rows) => [...rows]).flat()]
}

describe('a reader', () => {
  it('rounds no whole number', async () => {
    const query = await filled()

    expect(all(query('SELECT a, a AS a FROM orders WHERE id = 2'))).toEqual([
      ['a', 'a_2'],
      [9007199254740993n, 9007199254740993n],
    ])
  })

  it.each([
    'DELETE FROM orders',
    'DROP TABLE orders',
    'PRAGMA user_version = 999',
    'PRAGMA journal_mode = DELETE',
    `ATTACH 'other.db' AS other`,
    `VACUUM INTO 'other.db'`,
    'BEGIN IMMEDIATE',
    'INSERT INTO orders (id) VALUES (1) RETURNING id',
    'SELECT 1; SELECT 2',
    'SELECT nothing FROM orders',
    'SELEC 1',
    '',
  ])('refuses SQL that does not only read: %s', async (sql) => {
    const query = await filled()

    expect(() => all(query(sql))).toThrow(UsageError)
  })
})

describe.runIf(CAN_BE_REFUSED)('a reader of another user', () => {
  it('reads while a sync keeps the files of WAL mode', () => {
    const test = openTestMirror()
    for (const suffix of ['', '-wal', '-shm']) fs.chmodSync(test.file + suffix, 0o644)

    expect(readAsNobody(test.file)).toBe('2 jobs')
  })

  it.each([0o555, 0o777])(
    'creates nothing beside a mirror that it may not write, in a folder of mode %o',
    (mode) => {
      const test = openTestMirror()
      test.close()
      fs.chmodSync(test.file, 0o644)
      fs.chmodSync(path.dirname(test.file), mode)
      const before = fs.readdirSync(path.dirname(test.file))

      const outcome = readAsNobody(test.file)

      expect(outcome).toMatch(
        /^MirrorError: .*WAL mode needs write access to the file and to its folder, or a sync that is running/,
      )
      expect(fs.readdirSync(path.dirname(test.file))).toEqual(before)
    },
  )
})

const READ = `
const { openForReading } = await import(${JSON.stringify(new URL('../../../src/store/sqlite/open.ts', import.meta.url).href)})
const { readFileFacts } = await import(${JSON.stringify(new URL('../../../src/store/sqlite/read.ts', import.meta.url).href)})
try {
  console.log(readFileFacts(openForReading(process.argv[1]), () => null, 0).jobs.length + ' jobs')
} catch (error) {
  console.log(error.name + ': ' + error.message)
}
`

/** Reads the mirror in a process of a user without rights; returns the outcome in words. */
function readAsNobody(file: string): string {
  const uid = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', READ, file], {
    encoding: 'utf8',
    ...uid,
  })
  return child.stdout.trim() || child.stderr
}
