import { MirrorError, systemCode } from '../../../errors.ts'
import { freshnessOf, type JobFreshness } from '../../core/publication.ts'
import { quoted } from '../../core/sql.ts'
import { LATEST_VERSION } from '../../schema.ts'
import type { Connection } from '../driver.ts'
import { isDamage } from '../file/errors.ts'
import { COPY_ID, openAsItIs, openForReading, translate } from '../file/open.ts'
import { ANALYZED_ROWS } from '../maintenance.ts'
import { createIndexesSql, MIRROR, tablesOfCopy } from './tables.ts'

/** What a copy holds. */
export interface CopyContents {
  /** By table. */
  rows: Record<string, number>
  jobs: JobFreshness[]
}

/**
 * Fills an empty file with what people read of a mirror, all of one moment, in tables made for reading. Syncs can write
 * meanwhile, and their write-ahead log grows until the rows are copied. Throws MirrorError.
 * @param mirror The mirror's file, or a copy's.
 * @param mostBytes The most that the copy may have.
 * @param onBegin Called before the moment that the copy shows.
 */
export function buildCopy(
  mirror: string,
  file: string,
  mostBytes: number,
  onBegin: () => void,
): CopyContents {
  const repeated = repeatCopy(mirror, file, onBegin)
  if (repeated) return repeated
  const connection = openEmptyCopy(file, mostBytes)
  try {
    connection.prepare(`ATTACH ? AS ${MIRROR}`).run(mirror)
    onBegin()
    const tables = connection.transaction(() => copyTables(connection))()
    connection.exec(`DETACH ${MIRROR}`)
    for (const sql of createIndexesSql(tables)) connection.exec(sql)
    connection.pragma(`analysis_limit = ${ANALYZED_ROWS}`)
    connection.exec('ANALYZE')
    return readContents(connection)
  } catch (error) {
    if (systemCode(error) === 'SQLITE_FULL')
      throw new MirrorError(`there is not enough room for a copy of ${mirror}`)
    // The copy is new, so what is damaged is the mirror.
    throw isDamage(error) ? translate(mirror, error) : error
  } finally {
    connection.close()
  }
}

function copyTables(connection: Connection): ReturnType<typeof tablesOfCopy> {
  const tables = tablesOfCopy(connection)
  for (const { name, declaration, insert } of tables) {
    // `prepare` takes one statement: `exec` would also run what somebody else's file has put behind it.
    connection.prepare(declaration).run()
    connection.prepare(`INSERT INTO main.${quoted(name)} ${insert}`).run()
  }
  const help = tables.some(({ name }) => name === 'sync_help')
  if (help) connection.exec(FORGET_ABSENT)
  return tables
}

/** The mirror's help also describes tables that no copy has. */
const FORGET_ABSENT = `
  DELETE FROM main.sync_help
  WHERE NOT EXISTS (
    SELECT 1 FROM pragma_table_info(sync_help."table", 'main') AS known
    WHERE sync_help."column" IS NULL OR known.name = sync_help."column"
  )
`

/** A copy of a copy is the same file. Null for a mirror. */
function repeatCopy(mirror: string, file: string, onBegin: () => void): CopyContents | null {
  const connection = openForReading(mirror)
  if (!connection) throw new MirrorError(`there is no mirror at ${mirror} yet; "admin-mirror sync" makes it`)
  try {
    if (connection.pragma('application_id', { simple: true }) !== COPY_ID) return null
    onBegin()
    connection.prepare('VACUUM INTO ?').run(file)
    return readContents(connection)
  } finally {
    connection.close()
  }
}

function readContents(connection: Connection): CopyContents {
  const names = connection
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY _rowid_",
    )
    .pluck()
    .all() as string[]
  const count = (name: string) =>
    connection
      .prepare(`SELECT count(*) FROM ${quoted(name)}`)
      .pluck()
      .get() as number
  const jobs = freshnessOf(connection.prepare('SELECT * FROM sync_status').all() as Partial<JobFreshness>[])
  return { rows: Object.fromEntries(names.map((name) => [name, count(name)])), jobs }
}

/** The most database pages that SQLite allows. */
const MOST_FILE_PAGES = 2 ** 32 - 2

/**
 * Opens an empty file for a copy of at most `mostBytes`. Nothing is flushed to the disk before the caller does
 * it, and a kill leaves a useless file.
 */
function openEmptyCopy(file: string, mostBytes: number): Connection {
  const connection = openAsItIs(file)
  // Without `main.`, the mirror that is attached later would be locked, too.
  for (const pragma of ['locking_mode = EXCLUSIVE', 'journal_mode = OFF', 'synchronous = OFF'])
    connection.pragma(`main.${pragma}`)
  connection.pragma('main.cache_size = -65536')
  // For the mirror: its reader waits while a log is recovered.
  connection.pragma('busy_timeout = 30000')
  connection.pragma(`application_id = ${COPY_ID}`)
  connection.pragma(`user_version = ${LATEST_VERSION}`)
  const pages = Math.floor(mostBytes / (connection.pragma('page_size', { simple: true }) as number))
  connection.pragma(`main.max_page_count = ${Math.min(Math.max(1, pages), MOST_FILE_PAGES)}`)
  return connection
}
