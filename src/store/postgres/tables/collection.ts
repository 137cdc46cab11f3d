import type { Job } from '../../../sync/types.ts'
import { type Catalog, shapeOf, type TableShape } from '../../columns/catalog.ts'
import type { ArrayView } from '../../columns/elements.ts'
import { createRowWriter, type RowWriter } from '../../core/rows.ts'
import { loadCatalog } from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { StaleTablesError } from '../server/errors.ts'
import type { Server } from '../server/server.ts'
import { ensureTables } from './configured.ts'
import { type Fitting, fitTables, typedRows, type WantedItems } from './fit.ts'
import { loadViews, versionOf } from './records.ts'
import type { FittedRow } from './row-size.ts'

/** What this process knows of a collection's tables. */
export interface OpenCollection {
  shape: TableShape
  writer: RowWriter
  /** The tables are as they are known as long as `sync_collections` says this. */
  version: number
  /** The typed rows of items; null if the tables have to be extended first. */
  typed(wanted: WantedItems): FittedRow[] | null
}

/** What this process knows of the tables of collections. */
export interface Collections {
  /** Makes the tables of the job's collection if there are none. Throws JobError if that is impossible. */
  open(job: Job): Promise<OpenCollection>
  /** Changes columns and views so that they can hold the items. */
  fit(job: Job, wanted: WantedItems, at: string): Promise<Fitting>
  /** Forgets what is known of one: another worker has changed it. */
  forget(job: Job): void
  /** Runs a task, and once more if another worker changed the tables meanwhile. */
  retrying<T>(job: Job, task: (tables: OpenCollection) => Promise<T>): Promise<T>
}

const MOST_CHANGES = 10

export function createCollections(server: Server): Collections {
  const known = new Map<string, OpenCollection>()
  /** What a warning was given for, once a process. */
  const full = new Set<string>()
  const strangers = new Map<string, ReadonlySet<string>>()

  async function load(job: Job): Promise<OpenCollection> {
    const { name, key } = job.collection
    await ensureTables(server, { name, key })
    const version = await runRule(server, versionOf(name))
    const catalog = await runRule(server, loadCatalog(POSTGRES, { name, key }, full.has(name)))
    return opened(name, catalog, await loadViews(server, name), version ?? 0)
  }

  function opened(
    name: string,
    catalog: Catalog,
    views: ReadonlyMap<string, ArrayView>,
    version: number,
  ): OpenCollection {
    const shape = shapeOf(name, catalog)
    return {
      shape,
      writer: createRowWriter(POSTGRES, shape),
      version,
      typed: (wanted) => typedRows(catalog, views, strangers.get(name) ?? new Set(), wanted),
    }
  }

  async function open(job: Job): Promise<OpenCollection> {
    const { name } = job.collection
    const tables = known.get(name) ?? (await load(job))
    known.set(name, tables)
    return tables
  }

  const forget = ({ collection }: Job) => known.delete(collection.name)

  return {
    open,
    forget,
    async fit(job, wanted, at) {
      const { name, key } = job.collection
      const isFullReported = full.has(name)
      const options = { server, collection: { name, key }, isFullReported, at }
      const fitting = await fitTables(options, wanted)
      if (fitting.isFullReported) full.add(name)
      strangers.set(name, new Set([...(strangers.get(name) ?? []), ...fitting.strangers]))
      forget(job)
      return fitting
    },
    async retrying(job, task) {
      for (let tries = 1; ; tries++) {
        try {
          return await task(await open(job))
        } catch (error) {
          if (!(error instanceof StaleTablesError) || tries === MOST_CHANGES) throw error
          forget(job)
        }
      }
    },
  }
}
