import { MirrorError } from '../../errors.ts'
import { advisoryLocks, readDaemons } from '../../store/postgres/leases.ts'
import { readOverview } from '../../store/postgres/read/overview.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import type { ServedMirror } from '../listener/source.ts'
import type { Runtime } from '../runtime.ts'
import { readerOf } from './status.ts'

/** After so long, a probe or an answer says that the server is away. Milliseconds. */
const PROBE_MS = 3000
const ANSWER_MS = 10_000

/** What the listener reads of a mirror on a PostgreSQL server, on the connections of the worker. */
export function createServedServer(server: Server, { sleep }: Pick<Runtime, 'sleep'>): ServedMirror {
  const { host, port } = server.address
  /** Rejects after so long. The task itself continues, and later calls wait for the same one. */
  function within<T>(ms: number, task: () => Promise<T>): () => Promise<T> {
    let pending: Promise<T> | null = null
    return () => {
      pending ??= task().finally(() => {
        pending = null
      })
      const over = new AbortController()
      const away = sleep(ms, over.signal).then(() => {
        throw new MirrorError(`the PostgreSQL server at ${host}:${port} does not answer; it is waited for`)
      })
      // Of the loser of the race, nobody handles the error.
      away.catch(() => {})
      pending.catch(() => {})
      return Promise.race([pending, away]).finally(() => over.abort())
    }
  }

  let since = 0
  const read = within(ANSWER_MS, () =>
    server.reading(async (sql) => {
      const locks = await advisoryLocks(sql)
      const reader = await readerOf(sql, server.address.schema, locks)
      const daemons = await readDaemons(sql, server.address.schema, locks)
      return { ...(await readOverview(sql, since)), reader: { ...reader, daemons: () => daemons } }
    }),
  )
  return {
    probe: within(PROBE_MS, async () => {
      await server.rows('SELECT 1 FROM sync_settings LIMIT 1')
    }),
    freeBytes: async () => null,
    overview: (newSince) => {
      since = newSince
      return read()
    },
  }
}
