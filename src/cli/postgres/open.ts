import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import { mirrorState } from '../../store/core/publication.ts'
import { runRule } from '../../store/postgres/driver.ts'
import { createServerForgetting } from '../../store/postgres/forget.ts'
import {
  alone,
  announceDaemon,
  createLeases,
  forgetDeadDaemons,
  takeFreeLists,
  withdrawDaemon,
} from '../../store/postgres/leases.ts'
import { writeMirrorFile } from '../../store/postgres/mirror-file.ts'
import type { ListQueue } from '../../store/postgres/queue/queue.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { claimAddressOn, openPostgresStore } from '../../store/postgres/store.ts'
import { rebuildCollection } from '../../store/postgres/tables/collection.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { translatingErrors } from '../../store/sqlite/file/open.ts'
import { inspectPlace, makePublicFolder } from '../../store/sqlite/publish/place.ts'
import { type CopyTask, startCopy } from '../../store/sqlite/publish/publish.ts'
import type { OpenMirror, OpenOptions, Sharing } from '../mirror.ts'
import { makerOf, type Publishing } from '../publisher.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgres, workerName } from './connect.ts'
import { createServedServer, originOn, ruleRunner } from './mirror.ts'

/** Opens the mirror on a server, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openServer({ config, runtime, notes, address }: OpenOptions): Promise<OpenMirror> {
  const { baseUrl } = config.api
  const { server, clock, close } = await openPostgres(config, runtime, notes)
  const { now } = clock
  try {
    const warning = address && (await claimAddressOn(server, baseUrl, address === 'accept'))
    if (warning) notes.warn({ event: 'address_accepted' }, warning)
    const processName = workerName(runtime)
    const leases = await createLeases(server, processName)
    const { keepRuns } = config
    const { signal } = runtime
    let queue: ListQueue | null = null
    let since: string | null = null
    const sharing: Sharing = {
      async openQueue(onTrouble) {
        // Only `start` needs pg-boss.
        const { openQueue } = await import('../../store/postgres/queue/queue.ts')
        queue = await openQueue(server, onTrouble)
        return queue
      },
      async renew() {
        await leases.renew()
        if (since !== null) await announceDaemon(server, processName, since)
      },
      takeFreeLists: (lists) => takeFreeLists(server, lists, now()),
    }
    return {
      ...ruleRunner(server),
      store: openPostgresStore({ server, leases, baseUrl, keepRuns, now, signal }),
      tokens: await createTokens(server, clock, runtime.newToken),
      processName,
      now,
      sharing,
      publishing: createPublishing(server, runtime),
      serve: async () => createServedServer(server, runtime),
      async announceDaemon() {
        await forgetDeadDaemons(server)
        since = new Date(now()).toISOString()
        await announceDaemon(server, processName, since)
        return async () => {
          since = null
          await withdrawDaemon(server, processName)
        }
      },
      rebuild: (name) => rebuildCollection(server, name, { now, signal }),
      beginForgetting: async () => createServerForgetting(server, leases, { now, signal }),
      async close() {
        // Its timers would keep the process alive.
        await queue?.close().catch(() => {})
        await leases.close()
        await close()
      },
    }
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
}

/** Publishes a file of a mirror on a PostgreSQL server. */
function createPublishing(server: Server, runtime: Pick<Runtime, 'now' | 'pid' | 'newToken'>): Publishing {
  return {
    async state() {
      const maker = makerOf(await originOn(server))
      return server.reading((sql) => runRule(sql, mirrorState(maker)))
    },
    async alone(task) {
      const isDone = await alone(server, 'publish', async () => {
        await task()
        return true
      })
      return isDone ?? false
    },
    copy: ({ contents, begunAt, ...task }, signal) =>
      throughFolder(task, async (mirror) => {
        let at = runtime.now()
        await writeMirrorFile(server, mirror, () => {
          signal.throwIfAborted()
          for (const end of ['', '-wal', '-shm']) fs.rmSync(mirror + end, { force: true })
          at = runtime.now()
        })
        const published = { version: manifest.version, origin: await originOn(server), contents, begunAt }
        const lockName = newLockName(runtime.pid, runtime.newToken)
        return startCopy({ ...task, mirror, published, at }, lockName, signal)
      }),
  }
}

/** Runs `task` with the name of a file beside the target, in a folder of its own that nobody else can read. */
async function throughFolder<T>(
  { target, mode }: Pick<CopyTask, 'target' | 'mode'>,
  task: (file: string) => Promise<T>,
): Promise<T> {
  const folder = translatingErrors(target, () => {
    makePublicFolder(path.dirname(target), mode ?? 0, null)
    const { file } = inspectPlace(target)
    const begin = `.${path.basename(file)}.mirror-`
    const beside = path.dirname(file)
    const made = fs.mkdtempSync(path.join(beside, begin))
    sweep(beside, begin, fs.lstatSync(made))
    return made
  })
  try {
    return await task(path.join(folder, 'mirror.db'))
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** Deletes the folders of killed workers. This worker holds the lock, so no other one of this user is using them. */
function sweep(beside: string, begin: string, own: fs.Stats): void {
  for (const name of fs.readdirSync(beside)) {
    if (!name.startsWith(begin)) continue
    const left = path.join(beside, name)
    const stat = fs.lstatSync(left, { throwIfNoEntry: false })
    if (stat?.isDirectory() && stat.uid === own.uid && stat.ino !== own.ino)
      fs.rmSync(left, { recursive: true, force: true })
  }
}
