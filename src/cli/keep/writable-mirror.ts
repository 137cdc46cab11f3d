import type { Config } from '../../config/config.ts'
import { InterruptedError } from '../../errors.ts'
import type { Rebuilt } from '../../store/sqlite/tables/rebuild.ts'
import type { Forgetting } from '../../store/sqlite/walks/forget.ts'
import type { ForgottenJob, Holdings } from '../../store/sqlite/walks/holdings.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { isNotMadeYet } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import { inventoryOfFile, openFile } from './writable-file.ts'

/** What a mirror of either kind holds, by organizations and their collections. */
export interface Inventory {
  organizations(): Promise<{ id: string; name: string }[]>
  collectionsOf(organizationId: string): Promise<string[]>
  holdingsOf(job: ForgottenJob): Promise<Holdings>
  close(): Promise<void>
}

/** A mirror of either kind, for commands that change it and send nothing. */
export interface WritableMirror extends Inventory {
  /** Lifts the holds of these organizations' tokens; see `Tokens`. */
  resume(organizationIds: readonly string[]): Promise<string[]>
  collections(): Promise<readonly string[]>
  /** Makes the typed table and the views of a collection from its raw rows. Throws InterruptedError after the signal. */
  rebuild(collection: string): Promise<Rebuilt>
  beginForgetting(): Promise<Forgetting>
}

/** Whether there is a mirror. Changes nothing. Throws MirrorError. */
export async function isMade(config: Config, runtime: Runtime): Promise<boolean> {
  if (!config.postgres) return !isNotMadeYet(config.database)
  const { isMadeOnServer } = await import('../postgres/open.ts')
  return isMadeOnServer(config, runtime)
}

/** Opens the mirror for reading; null if there is none yet. Throws MirrorError. */
export async function openInventory(config: Config, runtime: Runtime): Promise<Inventory | null> {
  if (!config.postgres) return inventoryOfFile(config.database)
  const { inventoryOfServer } = await import('../postgres/writable-server.ts')
  return inventoryOfServer(config, runtime)
}

/** Runs a command that changes the mirror. Returns its exit code, or that of the signal that stopped it. */
export async function withMirror(
  config: Config,
  runtime: Runtime,
  work: (mirror: WritableMirror) => Promise<number>,
): Promise<number> {
  const { signal, stderr } = runtime
  const open = config.postgres ? (await import('../postgres/writable-server.ts')).openServer : openFile
  try {
    const mirror = await open(config, runtime, (message) => stderr.write(`${message}\n`))
    try {
      return await work(mirror)
    } finally {
      await mirror.close()
    }
  } catch (error) {
    if (!(error instanceof InterruptedError) || !signal.aborted) throw error
    stderr.write(`${error.message}\n`)
    return exitCodeOfStop(signal)
  }
}
