import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { createBudgets } from '../../src/store/core/budgets.ts'
import { saltOf } from '../../src/store/core/settings.ts'
import { createStore } from '../../src/store/core/store.ts'
import { createTokens, register } from '../../src/store/core/tokens.ts'
import { runRule, SQLITE } from '../../src/store/sqlite/driver.ts'
import { openForWriting } from '../../src/store/sqlite/open.ts'
import { runnerOn } from '../../src/store/sqlite/runner.ts'
import { READING_VERSION } from '../../src/sync/coverage/read-list.ts'
import { filtersText } from '../../src/sync/resume.ts'
import type { BeginRun, KeptRules } from '../../src/sync/store.ts'
import type { WalkPlan } from '../../src/sync/types.ts'
import { type Clock, createClock } from './clock.ts'
import { ACME, GLOBEX } from './jobs.ts'
import { testLeases } from './leases.ts'
import { tempFolder } from './temp-folder.ts'

export type Row = Record<string, unknown>

export type TestMirror = ReturnType<typeof openTestMirror>

/** How long the test mirror keeps lines of `sync_runs` and closed walks. */
export const KEEP_RUNS_MS = 90 * 86_400_000

/** To make the tables takes four times as long as to copy them. */
let template: Buffer | null = null

function makeMirror(): string {
  const file = path.join(tempFolder(), 'mirror.db')
  if (template === null) {
    openForWriting(file).close()
    template = fs.readFileSync(file)
  } else fs.writeFileSync(file, template, { mode: 0o600 })
  return file
}

/** Acme and globex, each with this collection. */
export function registered(name: string) {
  return [ACME, GLOBEX].map((organization) => ({ ...organization, collections: [{ name }] }))
}

/** A real mirror in a file of its own, with acme and globex registered for `orders`. */
export function openTestMirror(options: { file?: string; clock?: Clock } = {}) {
  const { file = makeMirror(), clock = createClock() } = options
  const connection = openForWriting(file)
  const stop = new AbortController()
  const runner = runnerOn(connection, { ...clock, signal: stop.signal })
  const leases = testLeases(runner)
  const store = createStore({ runner, leases, baseUrl: 'https://admin.example.com', keepRuns: KEEP_RUNS_MS })
  const salt = runRule(
    connection,
    saltOf(() => 'a salt'),
  )
  const tokens = createTokens({ runner, salt, budgets: createBudgets(runner) })
  runRule(connection, register(SQLITE, registered('orders')))
  const reader = new Database(file, { readonly: true })
  const close = () => {
    reader.close()
    // Written at once, since nobody holds the lock.
    void leases.close()
    connection.close()
  }
  onTestFinished(close)
  return {
    file,
    clock,
    connection,
    store,
    tokens,
    /** What another connection reads: what is committed. Whole numbers are numbers, beyond 2^53 rounded. */
    rows: (sql: string, ...values: unknown[]) => reader.prepare(sql).all(...values) as Row[],
    /** The first column of the first row. */
    value: (sql: string, ...values: unknown[]): unknown =>
      reader
        .prepare(sql)
        .pluck()
        .get(...values),
    /** Tells the mirror that its process is to stop. */
    stop: () => stop.abort(),
    close,
  }
}

export const SYNC: WalkPlan = {
  origin: 'sync',
  kind: 'full',
  firstPage: 1,
  resumeWithin: 86_400_000,
  restart: false,
}

/** How a full walk reads its list, if it is the first one. */
export const RULES: KeptRules = {
  version: READING_VERSION,
  kind: 'full',
  firstPage: 1,
  total: 'check',
  maxPasses: 3,
  lastCoverage: null,
}

/** What begins a full walk of the orders. */
export const BEGIN: BeginRun = {
  trigger: 'manual',
  plan: SYNC,
  filters: filtersText({}),
  rules: RULES,
  resume: null,
  abandon: [],
  brief: false,
}

/** All that is committed: the schema, and every row of every table. */
export function dump({ rows }: TestMirror): Record<string, Row[]> {
  const schema = rows('SELECT type, name, sql FROM sqlite_schema ORDER BY name')
  const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name))
  return { schema, ...Object.fromEntries(tables.map((name) => [name, rows(`SELECT * FROM "${name}"`)])) }
}
