import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'

// Knows the driver, and nothing of the program: in this process, or named to Node with --import (inject-faults.ts).

/** A statement that SQLite is about to run, with single blanks, and its database's file. */
export interface Edge {
  what: string
  file: string
}

/** What it throws, the program gets in place of the result. What it runs itself is not told. */
type Watcher = (edge: Edge) => void

const watchers = new Set<Watcher>()
let isInstalled = false
let isWatching = false

/** Tells of each statement before it runs, until the function that is returned is called. */
export function watchEdges(watcher: Watcher): () => void {
  if (!isInstalled) install()
  isInstalled = true
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

type Call = (this: Database.Statement, ...values: unknown[]) => unknown

function install(): void {
  const Driver = createRequire(import.meta.url)('better-sqlite3') as typeof Database
  const memory = new Driver(':memory:')
  const statement = Object.getPrototypeOf(memory.prepare('SELECT 1')) as Record<string, Call>
  for (const name of ['run', 'get', 'all']) {
    const call = statement[name] as Call
    statement[name] = function (...values) {
      tell(this.source, this.database)
      return call.apply(this, values)
    }
  }
  memory.close()
  const { exec } = Driver.prototype
  Driver.prototype.exec = function (sql) {
    for (const one of sql.split(/(?<=;)\s*\n/)) tell(one, this)
    return exec.call(this, sql)
  }
}

function tell(sql: string, { name: file }: Database.Database): void {
  if (isWatching) return
  isWatching = true
  try {
    for (const watch of watchers) watch({ what: sql.trim().replaceAll(/\s+/g, ' '), file })
  } finally {
    isWatching = false
  }
}
