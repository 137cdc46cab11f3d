import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type PostgresSettings, parsePostgresAddress } from '../../../src/config/postgres-address.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { connectServer } from '../../../src/store/postgres/server.ts'
import { shortPatience } from '../../helpers/real-time.ts'
import type { Ground, Plot } from '../ground.ts'
import { type MirrorReader, readerOf } from '../oracle/context.ts'
import { makeScene, makeServerHistory, SCENES_FROM } from './scenes.ts'
import { forgetConnections, settleServer, watchServer } from './server-steps.ts'
import { createSyncClient, type SyncClient } from './sync-client.ts'
import { runTimersOn } from './timers.ts'

/** Where histories have their mirrors: schemas of the database that `url` names, with a superuser and its password. */
export function createServerGround(url: string): Ground {
  const client = createSyncClient(url)
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-simulation-'))
  const schema = `simulated_${process.pid}`
  return {
    historyOf: (seed) => (seed < SCENES_FROM ? makeServerHistory(seed) : makeScene(seed)),
    async lay() {
      // Loaded in the middle of a history it would take real time.
      await import('../../../src/cli/postgres.ts')
      const parsed = parsePostgresAddress(`${url}?schema=${schema}&sslmode=disable`)
      if ('problem' in parsed) throw new Error(parsed.problem)
      const postgres = parsed.value
      client.rows(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await makeSchema(postgres)
      client.rows(`SET search_path TO ${schema}`)
      return {
        folder: root,
        config: { database: postgres.shown, postgres },
        reader: readerOn(client),
        settle: settleServer,
        watch(world, { clock, wall }, onCommit) {
          runTimersOn(clock)
          watchServer({
            isAway: world.isLocked,
            terminate: (backends) => terminate(client, backends),
            clock: wall.now,
            onCommit,
          })
        },
        clear: forgetConnections,
      } satisfies Plot
    },
    remove() {
      fs.rmSync(root, { recursive: true, force: true })
      client.close()
    },
  }
}

async function makeSchema(settings: PostgresSettings) {
  const address = { ...settings, tls: null, setting: '"database"', password: () => settings.password() ?? '' }
  const server = await connectServer(address, shortPatience())
  await migrate(server)
  await server.close()
}

/** The server drops the locks of a process before it is gone. */
function terminate(client: SyncClient, backends: readonly number[]): void {
  client.rows('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS backend (pid)', backends)
  // Told to wait, the function itself looks only ten times a second.
  const left = () => client.rows('SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1::int[])', backends)
  for (const until = Date.now() + 5000; left().length > 0 && Date.now() < until; );
}

function readerOn({ rows }: SyncClient): MirrorReader {
  return readerOf((sql, ...values) => rows(inWordsOfServer(sql), ...values))
}

/** The oracle's questions. */
function inWordsOfServer(sql: string): string {
  let count = 0
  return sql
    .replaceAll('PRAGMA integrity_check', "SELECT 'ok' AS integrity_check")
    .replaceAll('rowid', 'ctid')
    .replaceAll('?', () => `$${++count}`)
}
