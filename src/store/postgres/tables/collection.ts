import { JobError } from '../../../errors.ts'
import { ensureTables, planTables } from '../../core/collections.ts'
import { fitTables, type KnownTables, knownTables, type TableAccess } from '../../core/fit.ts'
import { one, type Rule, run } from '../../core/sql.ts'
import type { ConfiguredCollection } from '../../core/tables.ts'
import { LATEST_VERSION } from '../../schema.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { assertKnownSchema } from '../migrate.ts'
import { StaleTablesError } from '../server/errors.ts'
import type { Server } from '../server/server.ts'
import { ALTERATION } from './alter.ts'

/** Two workers that make tables at once would each find a name free. */
const LOCK_TABLES =
  "SELECT pg_advisory_xact_lock(hashtext('admin-mirror tables'), hashtext(current_schema()))"

/**
 * Makes the tables of every configured collection, so that queries work before the first row. If the key has changed, tables without rows
 * are made again.
 */
export async function makeConfigured(
  server: Server,
  collections: readonly ConfiguredCollection[],
): Promise<void> {
  for (const collection of collections) {
    try {
      await makeMissing(server, collection)
    } catch (error) {
      // The job's own run reports it; the other jobs continue.
      if (!(error instanceof JobError)) throw error
    }
  }
}

/** Makes the tables of a collection if there are none. Throws JobError for another key, and for names that are taken. */
async function makeMissing(server: Server, collection: ConfiguredCollection): Promise<void> {
  if ((await runRule(server, planTables(collection))) === 'nothing') return
  await server.transaction(async (sql) => {
    await sql.rows(LOCK_TABLES)
    await runRule(sql, ensureTables(ALTERATION, collection))
  })
}

interface OpenTables extends KnownTables {
  /** The tables are as they are known as long as `sync_collections` says this. */
  version: number
}

export interface ServerTables extends TableAccess {
  /** Runs a task on tables as this process knows them, and again if another worker has changed them. */
  retrying<T>(collection: ConfiguredCollection, task: (tables: KnownTables) => Promise<T>): Promise<T>
}

const MOST_TRIES = 20

export function createServerTables(server: Server): ServerTables {
  const known = new Map<string, OpenTables>()

  async function open(collection: ConfiguredCollection): Promise<OpenTables> {
    const { name } = collection
    const before = known.get(name)
    if (before) return before
    await makeMissing(server, collection)
    // First, so that a change between the two is noticed.
    const version = await runRule(server, versionOf(name))
    const tables = { ...(await runRule(server, knownTables(POSTGRES, collection))), version }
    known.set(name, tables)
    return tables
  }

  async function retrying<T>(
    collection: ConfiguredCollection,
    task: (tables: OpenTables) => Promise<T>,
  ): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await task(await open(collection))
      } catch (error) {
        if (!(error instanceof StaleTablesError) || tries === MOST_TRIES) throw error
        await assertKnownSchema(server)
        known.delete(collection.name)
      }
    }
  }

  const withTables: TableAccess['withTables'] = (collection, begin) =>
    retrying(collection, (tables) =>
      server.transaction((sql) => runRule(sql, asKnown(collection.name, tables, begin))),
    )

  return {
    retrying,
    withTables,
    async withFittedTables(collection, wanted, at, begin) {
      const { name } = collection
      const change = function* () {
        const fitted = yield* fitTables(ALTERATION, collection, wanted, at)
        yield* run('UPDATE sync_collections SET version = version + 1 WHERE name = :name', { name })
        return fitted
      }
      const notices = await server.transaction((sql) => runRule(sql, change()))
      known.delete(name)
      return { outcome: await withTables(collection, begin), notices }
    },
  }
}

function* versionOf(name: string): Rule<number> {
  const row = yield* one<{ version: number }>('SELECT version FROM sync_collections WHERE name = :name', {
    name,
  })
  return row?.version ?? 0
}

/**
 * Locks what a writer relies on: whoever changes the tables of the collection waits for it. Without a row, the tables or the version of the
 * program are not as this process knows them.
 */
const AS_KNOWN = `
  SELECT 1
  FROM sync_collections
  WHERE name = :name AND version = :version
    AND EXISTS (SELECT 1 FROM sync_settings WHERE name = 'version' AND value = :latest)
  FOR SHARE
`

function* asKnown<T>(name: string, tables: OpenTables, begin: (tables: KnownTables) => Rule<T>): Rule<T> {
  const { version } = tables
  const same = yield* one(AS_KNOWN, { name, version, latest: String(LATEST_VERSION) })
  if (same) return yield* begin(tables)
  throw new StaleTablesError(`other workers keep changing the tables of ${name}`)
}
