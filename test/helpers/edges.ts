import fs from 'node:fs'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import type Database from 'better-sqlite3'

// Where the program meets the world outside: the statements that SQLite runs, and the calls of node:fs that change files. Knows
// the driver and Node, and nothing of the program: in this process, or named to Node with --import (faults.ts).

/** A statement or a call. */
export interface Edge {
  /** `UPDATE sync_jobs SET ...`, with single blanks; `fs.renameSync /a /b`. */
  what: string
  /** The database's file, or the first path of the call. */
  file: string
  /** False for what changes no file by itself: a statement that reads, or one within a transaction. */
  changesFiles: boolean
}

/** What it throws before, the caller gets in place of the result. What these do themselves is watched by nobody. */
export interface Watcher {
  before?: (edge: Edge) => void
  after?: (edge: Edge) => void
  failed?: (edge: Edge, error: unknown) => void
}

const watchers = new Set<Watcher>()
let isInstalled = false
let isWatching = false

/** Returns a function that ends it. */
export function watchEdges(watcher: Watcher): () => void {
  if (!isInstalled) install()
  isInstalled = true
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

type Call = (this: unknown, ...values: never[]) => unknown

function install(): void {
  const Driver = createRequire(import.meta.url)('better-sqlite3') as typeof Database
  const memory = new Driver(':memory:')
  const statement = Object.getPrototypeOf(memory.prepare('SELECT 1')) as Record<string, Call>
  for (const name of ['run', 'get', 'all']) wrap(statement, name, edgeOfStatement)
  memory.close()
  const { exec } = Driver.prototype
  Driver.prototype.exec = function (sql) {
    for (const one of statementsOf(sql)) around(edgeOf(flat(one), this), () => exec.call(this, one))
    return this
  }
  for (const name of ['openSync', ...SYNCHRONOUS]) wrap(fs as never, name, edgeOfCall(name))
  for (const name of ['open', 'rename', 'unlink', 'rm', 'mkdir'])
    wrap(fs.promises as never, name, edgeOfCall(name))
  syncBuiltinESMExports()
}

const SYNCHRONOUS = [
  'writeFileSync',
  'renameSync',
  'linkSync',
  'unlinkSync',
  'rmSync',
  'mkdirSync',
  'fsyncSync',
  'ftruncateSync',
]

function wrap(
  owner: Record<string, Call>,
  name: string,
  describe: (self: never, values: unknown[]) => Edge,
): void {
  const call = owner[name] as Call
  owner[name] = function (...values) {
    if (isWatching || watchers.size === 0) return call.apply(this, values)
    return around(describe(this as never, values), () => call.apply(this, values))
  }
}

function around<T>(edge: Edge, task: () => T): T {
  const ended = () => tell((watcher) => watcher.after?.(edge))
  const failed = (error: unknown) => {
    tell((watcher) => watcher.failed?.(edge, error))
    throw error
  }
  tell((watcher) => watcher.before?.(edge))
  let result: T
  try {
    result = task()
  } catch (error) {
    return failed(error)
  }
  if (result instanceof Promise) {
    return result.then((value) => {
      ended()
      return value
    }, failed) as T
  }
  ended()
  return result
}

function tell(what: (watcher: Watcher) => void): void {
  if (isWatching) return
  isWatching = true
  try {
    for (const watcher of watchers) what(watcher)
  } finally {
    isWatching = false
  }
}

function edgeOfStatement({ source, readonly, database }: Database.Statement): Edge {
  return edgeOf(flat(source), database, readonly)
}

function edgeOf(what: string, { name, inTransaction }: Database.Database, isReading = false): Edge {
  const isOfTransaction = /^(BEGIN|COMMIT|END)\b/.test(what)
  return { what, file: name, changesFiles: isOfTransaction || !(isReading || inTransaction) }
}

function edgeOfCall(name: string) {
  return (_self: unknown, values: unknown[]): Edge => {
    const paths = values.slice(0, 2).filter((value) => typeof value === 'string')
    const [file = ''] = paths
    return { what: `fs.${name} ${paths.join(' ')}`, file, changesFiles: true }
  }
}

function flat(sql: string): string {
  return sql.trim().replaceAll(/\s+/g, ' ')
}

/** Each of them alone, so that one can end between them. A trigger, whose statements end in semicolons too, stays in one piece. */
function statementsOf(sql: string): string[] {
  return /\bTRIGGER\b/i.test(sql) ? [sql] : sql.split(/(?<=;)\s*\n/).filter((one) => one.trim() !== '')
}
