import Database from 'better-sqlite3'
import { type Patch, patchedBy } from '../helpers/patch.ts'
import { asksBefore, saysBefore } from '../helpers/planted.ts'
import { ORDERS } from './crash-scene.ts'
import { type Asked, type ListServer, pageOf, type Reply, serve } from './list-server.ts'
import type { LogLine, Running } from './processes.ts'
import { createWorkspace, organization, type Workspace } from './workspace.ts'

/** A place of the program in front of which the mirror's lock is taken by another process: the one that runs the test. */
export interface LockedPlace {
  file: string
  statement: string
  when?: string
}

export interface LockScene {
  workspace: Workspace
  server: ListServer
  /** Starts a command that finds the mirror locked at the place, and waits there. */
  startWaiting(args: readonly string[], ...more: Patch[]): Promise<Running>
  letGo(): void
}

/** Where locks are waited for. */
export const LOCK_WAIT = 'src/store/sqlite/transaction.ts'

export const LOOKING = saysBefore(LOCK_WAIT, 'await sleep(LOOK_EVERY_MS)', 'looking')

/** Told by a patched program each time that it has looked whether a lock is free. */
export const isLooking = ({ msg }: LogLine) => msg === 'looking'

export async function createLockScene(
  { file, statement, when }: LockedPlace,
  instead: (asked: Asked) => Reply | undefined | Promise<undefined> = () => undefined,
): Promise<LockScene> {
  const locks: Database.Database[] = []
  const server = await serve(async (asked) => {
    if (asked.path !== '/lock') return (await instead(asked)) ?? pageOf(ORDERS, asked)
    if (locks.length === 0) locks.push(new Database(workspace.mirror).exec('BEGIN IMMEDIATE'))
    return {}
  })
  const workspace = createWorkspace({ baseUrl: server.url, organizations: [organization('acme', 1)] })
  const planted = [asksBefore(file, statement, `${server.url}/lock`, when), LOOKING]
  return {
    workspace,
    server,
    async startWaiting(args, ...more) {
      const running = workspace.start(args, { env: patchedBy(...planted, ...more) })
      await running.log(isLooking)
      return running
    },
    letGo: () => {
      for (const lock of locks) lock.close()
    },
  }
}
