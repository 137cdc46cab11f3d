import fs from 'node:fs'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { type Patch, patchedBy } from '../helpers/patch.ts'
import { type Asked, pageOf, type Reply, serve } from './list-server.ts'
import { expectReadOn } from './reading.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

export interface Order {
  id: number | string
  [field: string]: unknown
}

/** Five pages that have the mirror do everything that it does to its tables. */
export const ORDERS: readonly Order[] = [
  { id: 1, price: 1 },
  { id: 2, price: 2 },
  // A further column.
  { id: 3, price: 3, note: 'a note' },
  { id: 4, price: 4 },
  // A whole number's column becomes one of fractions; a view.
  { id: 5, price: 5 },
  { id: 6, price: 6.5, lines: [{ sku: 'a' }, { sku: 'b' }] },
  // The key's column becomes one of texts.
  { id: 'seven', price: 7 },
  { id: 8, price: 8 },
  { id: 9, price: 9 },
  { id: 10, price: 10 },
]

/** One process from its start to its end, which may be its death. */
export interface Life {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
  /** The pages that it asked for, as far as they have come: the last request may come after its end. */
  readonly pages: number[]
  /** What SQLite says of the mirror as the process left it. */
  integrity: unknown
}

/** A list and a mirror, on which one sync after another lives and dies. */
export interface CrashScene {
  workspace: Workspace
  /** A plain sync of the program with these patches, at one of which it may die. */
  sync(...patches: Patch[]): Promise<Life>
}

export interface CrashSettings {
  /** What the server answers instead of the page; requests of all lives are counted from 1. */
  instead?: (asked: Asked, count: number, workspace: Workspace) => Reply | undefined | Promise<Reply>
}

export async function createCrashScene({ instead }: CrashSettings = {}): Promise<CrashScene> {
  const workspace = createWorkspace()
  let count = 0
  return {
    workspace,
    async sync(...patches) {
      // Another port for each life, which is the same address: what a dead one left in the wires comes to its own server.
      const server = await serve((asked) => instead?.(asked, ++count, workspace) ?? pageOf(ORDERS, asked))
      workspace.configure({ baseUrl: server.url, organizations: [organization('acme', 1)] })
      const options = patches.length > 0 ? { env: patchedBy(...patches) } : {}
      const { code, signal, stderr } = await workspace.run(['sync'], options)
      return {
        code,
        signal,
        stderr,
        get pages() {
          return server.asked.map(({ page }) => page)
        },
        integrity: integrityOf(workspace),
      }
    },
  }
}

/** The mirror as a dead process left it; read as a copy, so that nobody mends it for the next process. */
export interface Copy {
  /** What SQLite says of it. */
  integrity: unknown
  rows(sql: string, ...values: unknown[]): Record<string, unknown>[]
  close(): void
}

export function copyOf({ mirror }: Workspace): Copy {
  const copy = `${mirror}.copy`
  for (const end of ['', '-wal']) if (fs.existsSync(mirror + end)) fs.copyFileSync(mirror + end, copy + end)
  const connection = new Database(copy)
  return {
    integrity: connection.pragma('integrity_check', { simple: true }),
    rows: (sql, ...values) => connection.prepare(sql).all(...values) as Record<string, unknown>[],
    close() {
      connection.close()
      for (const end of ['', '-wal', '-shm']) fs.rmSync(copy + end, { force: true })
    },
  }
}

function integrityOf(workspace: Workspace): unknown {
  const copy = copyOf(workspace)
  copy.close()
  return copy.integrity
}

/** Has a sync die at each of these places, one after the other, and a last one live. Returns them all. */
export async function liveAndDie(
  scene: CrashScene,
  steps: readonly (readonly [where: string, ...Patch[]])[],
): Promise<Life[]> {
  const lives: Life[] = []
  for (const [where, ...patches] of steps) {
    const life = await scene.sync(...patches)
    expect(life, `${where}: ${life.stderr}`).toMatchObject({ code: null, signal: 'SIGKILL', integrity: 'ok' })
    lives.push(life)
  }
  const last = await scene.sync()
  expect(last, last.stderr).toMatchObject({ code: 0, integrity: 'ok' })
  return [...lives, last]
}

/** That the processes read one list among them: no page left out, and at most three asked again by each that followed a dead one. */
export function expectOneReading(lives: readonly Life[], pages: number): void {
  let furthest = 0
  for (const life of lives) {
    expectReadOn(life.pages, furthest, pages)
    furthest = Math.max(furthest, ...life.pages)
  }
  expect(furthest).toBe(pages)
}

/** That the mirror holds the list, and nothing is left of what was under way. */
export function expectWhole({ rows, value }: Workspace, list: readonly Order[] = ORDERS): void {
  const ids = list.map(({ id }) => String(id)).toSorted()
  for (const table of ['orders', 'orders_raw']) {
    const found = rows<{ id: string }>(`SELECT CAST(id AS TEXT) AS id FROM ${table}`)
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids)
  }
  const items = rows<{ _json: string }>('SELECT _json FROM orders_raw')
  expect(items.map(({ _json: json }) => JSON.parse(json))).toEqual(expect.arrayContaining([...list]))
  expect(value('SELECT rows FROM sync_jobs')).toBe(list.length)
  expect(value('SELECT count(*) FROM orders_history')).toBe(0)
  expect(value("SELECT count(*) FROM sync_runs WHERE status = 'running'")).toBe(0)
  expect(value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  expect(value("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_new\\_%' ESCAPE '\\'")).toBe(0)
}

/** How the runs ended, and how the walks, the first first. */
export function endsOf({ rows }: Workspace): { runs: string[]; walks: string[] } {
  const statuses = (table: string) =>
    rows<{ status: string }>(`SELECT status FROM ${table} ORDER BY id`).map(({ status }) => status)
  return { runs: statuses('sync_runs'), walks: statuses('sync_walks') }
}
