import fs from 'node:fs'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { createDice } from '../../src/sandbox/words.ts'
import { type Death, deathsIn } from '../helpers/deaths.ts'
import { faultsOf } from '../helpers/faults.ts'
import { createHastyClock } from '../helpers/in-process.ts'
import { type Asked, pageOf, type Reply, serve } from '../helpers/list-server.ts'
import type { Ended } from '../helpers/processes.ts'
import { createWorkspace, organization, type Settings, type Workspace } from '../helpers/workspace.ts'

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

/** Pages that announce a limit, and what each request leaves of it. */
export function limited(asked: Asked, before: readonly number[]): Reply {
  const left = String(59 - before.length)
  return {
    ...pageOf(ORDERS, asked),
    headers: { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': left },
  }
}

/** What dies, on which list. */
export interface CrashScene {
  /** The command that dies, and is typed again. */
  command: readonly string[]
  /** The answer to a request; `before`: to which pages the earlier ones were, those of dead processes too. */
  reply?: (asked: Asked, before: readonly number[]) => Reply
  /** On top of what suits a test. */
  settings?: Partial<Settings>
  /** A mirror to begin with; it is only copied. */
  prepared?: Workspace
  /** What must be true of the mirror before anybody goes on; that it says of itself what it holds, where nothing is given. */
  holds?: (left: Copy) => void
  /** Leaves out the deaths before the first request: those of any sync. */
  isFromRequest?: true
}

/** One death, and the life after it. */
export interface AfterDeath {
  workspace: Workspace
  /** The pages that each process asked for: the dead one first. */
  lives: number[][]
}

/** How the command ends that nobody disturbs. */
export interface Undisturbed {
  workspace: Workspace
  ended: Ended
}

export interface CrashStory {
  undisturbed: Undisturbed
  deaths: Death[]
  /** Types the command again in what this death left; and once more where a token was refused. */
  goOn(death: Death): Promise<AfterDeath>
  /** Kills a process there; what it leaves, and what the death left. */
  kill(death: Death): Promise<{ killed: Workspace; left: Workspace }>
}

const SEED = Number(process.env.SEED ?? 1)
const IS_LONG = Boolean(process.env.LONG)

/** Plays the command to its end, and finds its deaths. */
export async function createCrashStory(scene: CrashScene): Promise<CrashStory> {
  const { command, reply = (asked) => pageOf(ORDERS, asked), settings, prepared, isFromRequest } = scene
  const { holds = expectConsistent } = scene
  const clock = createHastyClock()
  let [before, asked]: [number[], number[]] = [[], []]
  const server = await serve((one) => {
    const answer = reply(one, [...before, ...asked])
    asked.push(one.page)
    return answer
  })

  function create(): Workspace {
    const organizations = [organization('acme', 1)]
    // Waits of the dead would make one due between two pages.
    return createWorkspace({ baseUrl: server.url, organizations, refresh: false, ...settings })
  }

  function createPrepared(): Workspace {
    const workspace = create()
    if (prepared) fs.copyFileSync(prepared.mirror, workspace.mirror)
    return workspace
  }

  /** Another process, behind those that asked for these pages. */
  function beginLife(earlier: readonly number[]): void {
    before = [...earlier]
    asked = []
  }

  function inherit(death: Death): Workspace {
    const workspace = create()
    death.leaveIn(workspace.folder)
    const copy = copyOf(workspace)
    expect(copy.integrity, death.place).toBe('ok')
    holds(copy)
    copy.close()
    return workspace
  }

  async function goOn(death: Death): Promise<AfterDeath> {
    const { place, mark } = death
    const workspace = inherit(death)
    const lives = [pages.slice(0, mark)]
    const live = () => {
      beginLife(lives.flat())
      lives.push(asked)
      return workspace.run(command, { clock })
    }
    let ended = await live()
    for (let more = 0; more < 2 && ended.code === 3; more++) ended = await live()
    expect(ended.code, `${place}: ${ended.stderr}`).toBe(0)
    expect(integrityOf(workspace), place).toBe('ok')
    return { workspace, lives }
  }

  const workspace = createPrepared()
  beginLife([])
  const first = await deathsIn(
    workspace.folder,
    () => workspace.run(command, { clock }),
    () => asked.length,
  )
  const pages = [...asked]

  return {
    undisturbed: { workspace, ended: first.result },
    deaths: first.deaths.filter(({ mark }) => mark > 0 || !isFromRequest),
    goOn,
    async kill(death) {
      const killed = createPrepared()
      beginLife([])
      const { what, nth } = death
      const env = faultsOf({ at: `^${RegExp.escape(what)}$`, nth, when: 'after', does: 'die' })
      expect(await killed.run(command, { env })).toMatchObject({ code: null, signal: 'SIGKILL' })
      return { killed, left: inherit(death) }
    },
  }
}

/** So many of them, the same ones each time: SEED=2 takes others, LONG=1 all. */
export function someOf<T>(all: readonly T[], count: number): T[] {
  if (IS_LONG) return [...all]
  const dice = createDice(SEED)
  const left = [...all]
  return Array.from({ length: Math.min(count, all.length) }, () =>
    left.splice(dice.below(left.length), 1),
  ).flat()
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

/** That rows and typed rows are the same ones, and as many as is said; and that each page of an open walk is in the ledger. */
function expectConsistent({ rows }: Copy): void {
  const isMade = rows("SELECT 1 FROM sqlite_schema WHERE name = 'orders_history'").length > 0
  if (!isMade) return
  expect(rows(UNEQUAL)).toEqual([])
  const counted = 'SELECT count(*) FROM orders_raw WHERE _organization_id = organization_id'
  expect(rows(`SELECT * FROM sync_jobs WHERE rows <> (${counted})`)).toEqual([])
  const pages = 'SELECT count(*) FROM sync_pages WHERE walk_id = sync_walks.id'
  expect(rows(`SELECT * FROM sync_walks WHERE status = 'open' AND pages <> (${pages})`)).toEqual([])
}

const KEYS = 'SELECT _organization_id, CAST(id AS TEXT) AS id FROM'

/** Rows that are in one of the two tables alone. */
export const UNEQUAL = `
  SELECT * FROM (${KEYS} orders EXCEPT ${KEYS} orders_raw)
  UNION ALL SELECT * FROM (${KEYS} orders_raw EXCEPT ${KEYS} orders)
`

function integrityOf(workspace: Workspace): unknown {
  const copy = copyOf(workspace)
  copy.close()
  return copy.integrity
}

/** That the processes read one list among them: no page left out, and at most three asked again by each that followed a dead one. */
export function expectOneReading(lives: readonly number[][], pages: number): void {
  let furthest = 0
  for (const asked of lives) {
    expectReadOn(asked, furthest, pages)
    furthest = Math.max(furthest, ...asked)
  }
  expect(furthest).toBe(pages)
}

/**
 * That the requests of a process read a list of so many pages on: no page left out, and at most three asked again after what
 * others had asked for before it: the last page written, the one being written, and the one in flight. Behind the last page,
 * any still list is asked for one of its pages once more.
 */
export function expectReadOn(asked: readonly number[], furthest: number, lastPage: number): void {
  const pages = withoutCheck(asked, furthest, lastPage)
  const [first = furthest + 1] = pages
  expect(first).toBeLessThanOrEqual(furthest + 1)
  expect(pages).toEqual(pages.map((_, index) => first + index))
  expect(pages.filter((page) => page <= furthest).length).toBeLessThanOrEqual(3)
}

function withoutCheck(asked: readonly number[], furthest: number, lastPage: number): readonly number[] {
  const isBehindTheEnd = (asked.at(-2) ?? furthest) === lastPage
  return isBehindTheEnd && asked.at(-1) === Math.round(0.37 * lastPage) ? asked.slice(0, -1) : asked
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
