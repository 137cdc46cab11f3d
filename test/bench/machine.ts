import fs from 'node:fs'
import os from 'node:os'
import process from 'node:process'
import Database from 'better-sqlite3'
import type { Machine } from './row.ts'

/** On what this runs. */
export function describeMachine(): Machine {
  const manifest = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const { got = '', 'better-sqlite3': betterSqlite3 = '' } = manifest.dependencies
  return {
    processor: os.cpus()[0]?.model ?? 'unknown processor',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 1024 ** 3),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    versions: { Node: process.versions.node, got, 'better-sqlite3': betterSqlite3, SQLite: sqliteVersion() },
  }
}

function sqliteVersion(): string {
  const connection = new Database(':memory:')
  try {
    return connection.prepare('SELECT sqlite_version()').pluck().get() as string
  } finally {
    connection.close()
  }
}
