import fs from 'node:fs'
import path from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import { mirrorState, STATE_SQL, type StateLines } from '../../store/mirror-state.ts'
import type { Leases } from '../../store/postgres/leases.ts'
import { writeMirrorFile } from '../../store/postgres/publish/mirror-file.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { translatingErrors } from '../../store/sqlite/file/open.ts'
import { type Origin, originOf } from '../../store/sqlite/publish/origin.ts'
import { inspectPlace, makePublicFolder } from '../../store/sqlite/publish/place.ts'
import type { CopyTask } from '../../store/sqlite/publish/publish.ts'
import { startCopy } from '../../store/sqlite/publish/start.ts'
import { makerOf, type Publishing } from '../publisher.ts'
import type { Runtime } from '../runtime.ts'

const LOCK = 'publish'

/** Publishes a file of a mirror on a PostgreSQL server. */
export function createPublishing(
  server: Server,
  leases: Leases,
  runtime: Pick<Runtime, 'now' | 'pid' | 'newToken'>,
): Publishing {
  return {
    async state() {
      const maker = makerOf(await originOn(server))
      return server.reading(async (sql) => {
        const lines: Record<string, unknown[]> = {}
        for (const [name, text] of Object.entries(STATE_SQL)) lines[name] = await sql.rows(text)
        return mirrorState(lines as unknown as StateLines, maker)
      })
    },
    async alone(task) {
      if (!(await leases.lock(LOCK, ''))) return false
      try {
        await task()
        return true
      } finally {
        await leases.unlock(LOCK, '')
      }
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

/** Null for a mirror that has just been made. */
export async function originOn(server: Server): Promise<Origin | null> {
  const [row] = await server.rows<{ salt: string; since: number | null }>(ORIGIN_SQL)
  const { host, port, database, schema } = server.address
  return row ? originOf(`${host}:${port}/${database}?schema=${schema}`, row) : null
}

const ORIGIN_SQL = `
  SELECT value AS salt, (SELECT (extract(epoch FROM min(first_seen_at)) * 1000)::double precision FROM sync_columns) AS since
  FROM sync_settings
  WHERE name = 'salt'
`

/** Runs `task` with the name of a file in a folder of its own beside the target, which nobody else can read. */
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
