import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parsePostgresAddress } from '../../../src/config/postgres-address.ts'
import { makeSchema } from '../../../src/store/postgres/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server.ts'
import { shortPatience } from '../../helpers/real-time.ts'
import type { Ground } from '../ground.ts'
import { makeHistory } from '../history.ts'
import { readerOf } from '../oracle/context.ts'
import { makeScene, SCENES_FROM } from './scenes.ts'
import { forgetConnections, settleServer, watchServer } from './server-steps.ts'
import { createSyncClient } from './sync-client.ts'

/** Where histories have their mirrors: a schema of the database that `url` names, with a superuser and its password. */
export function createServerGround(url: string): Ground {
  const client = createSyncClient(url)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-simulation-'))
  const schema = `simulated_${process.pid}`
  const parsed = parsePostgresAddress(`${url}?schema=${schema}&sslmode=disable`)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const postgres = parsed.value
  const password = () => postgres.password() ?? ''

  /** The server drops the locks of a process before it is gone. */
  function terminate(backends: readonly number[]): void {
    client.rows('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS backend (pid)', backends)
    // Told to wait, the function itself looks only ten times a second.
    const left = () => client.rows('SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[])', backends)
    for (const until = Date.now() + 5000; left().length > 0 && Date.now() < until;);
  }

  return {
    historyOf: (seed) => (seed < SCENES_FROM ? makeHistory(seed, true) : makeScene(seed)),
    async lay(_seed, around) {
      client.rows(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      const address = { ...postgres, password }
      const server = await connectServer(address, shortPatience())
      await server.write(() => makeSchema(server))
      await server.close()
      client.rows(`SET search_path TO ${schema}`)
      watchServer({ ...around, terminate })
      return {
        folder,
        config: { database: postgres.shown, postgres },
        reader: readerOf((sql, ...values) => client.rows(inWordsOfServer(sql), ...values)),
        clear: forgetConnections,
      }
    },
    settle: settleServer,
    remove() {
      fs.rmSync(folder, { recursive: true, force: true })
      client.close()
    },
  }
}

/** The oracle's questions. */
function inWordsOfServer(sql: string): string {
  let count = 0
  return sql
    .replaceAll('PRAGMA integrity_check', "SELECT 'ok' AS integrity_check")
    .replaceAll('rowid', 'ctid')
    .replaceAll('?', () => `$${++count}`)
}
