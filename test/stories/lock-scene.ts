import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { watchEdges } from '../helpers/edges.ts'
import { createHastyClock, type HastyClock } from '../helpers/in-process.ts'
import { type Asked, type ListServer, type Reply, serve } from '../helpers/list-server.ts'
import { createWorkspace, organization, type Settings, type Workspace } from '../helpers/workspace.ts'
import { limited } from './crash-scene.ts'

/** How long SQLite itself waits for a lock. */
const SQLITE_WAITS_MS = 100

const NOON = Date.parse('2026-11-20T12:00:00.000Z')

/**
 * The mirror's lock in the hands of another program: transactions that want to write find it taken. So says the driver; that
 * SQLite says so, too, show the tests with a real lock.
 */
export interface Lock {
  /** Taken now, or before the transaction with this number, from 1. */
  take(before?: number): void
  letGo(): void
  /** How many transactions have begun, or tried to. */
  transactions(): number
  /** Called each time that somebody finds it taken, with the milliseconds since it was taken. */
  onLook(look: (heldMs: number) => void): void
}

export interface LockScene {
  workspace: Workspace
  server: ListServer
  /** Time passes by waiting alone. */
  clock: HastyClock
  lock: Lock
}

/** A list that announces a limit, and asks once for a pause; `reply` may answer something else. */
export async function createLockScene(
  reply: (asked: Asked, lock: Lock) => Reply | undefined | Promise<Reply> = () => undefined,
  settings: Partial<Settings> = {},
): Promise<LockScene> {
  const server = await serve((asked) => reply(asked, lock) ?? throttled(asked))
  const organizations = [organization('acme', 1)]
  const workspace = createWorkspace({ baseUrl: server.url, organizations, ...settings })
  const clock = createHastyClock(() => NOON)
  const lock = createLock(workspace.mirror, clock)

  function throttled(asked: Asked): Reply {
    const before = server.asked.slice(0, server.asked.indexOf(asked)).map(({ page }) => page)
    return asked.page === 3 && !before.includes(3)
      ? { status: 429, headers: { 'retry-after': '0' }, body: {} }
      : limited(asked, before)
  }

  return { workspace, server, clock, lock }
}

function createLock(mirror: string, clock: HastyClock): Lock {
  let count = 0
  let takenBefore = Number.POSITIVE_INFINITY
  let takenAt: number | null = null
  let look: ((heldMs: number) => void) | null = null
  const end = watchEdges({
    before({ what, file }) {
      if (file !== mirror || what !== 'BEGIN IMMEDIATE') return
      count++
      if (count < takenBefore) return
      takenAt ??= clock.now()
      clock.advance(SQLITE_WAITS_MS)
      look?.(clock.now() - takenAt)
      throw new Database.SqliteError('database is locked', 'SQLITE_BUSY')
    },
  })
  onTestFinished(end)
  return {
    take(before = 0) {
      takenBefore = before
    },
    letGo() {
      takenBefore = Number.POSITIVE_INFINITY
    },
    transactions: () => count,
    onLook(next) {
      look = next
    },
  }
}
