import { workerData } from 'node:worker_threads'
import { systemCode } from '../../errors.ts'
import { FORGET_PROCESSES } from '../core/leases.ts'
import { notePublishFailure } from '../core/publication.ts'
import { isForPeople, OF_EVERY_MIRROR } from '../core/query.ts'
import { quoted } from '../core/sql.ts'
import type { CopyTask } from './copy.ts'
import { type Connection, runRule } from './driver.ts'
import { connect, COPY_ID, isCurrentMirror } from './open.ts'
import { typesOf } from './read.ts'
import { ANALYZED_ROWS } from './runner.ts'

// The thread that `copy.ts` starts: it fills an empty file with what the mirror holds at one moment, and ends.

/** Syncs can write meanwhile, and their write-ahead log grows. */
function fillCopy({ mirror, target, publishMode }: CopyTask): void {
  // Not by `openForReading`, which would close a handle of the mirror, and so drop the locks of this process.
  const source = connect(mirror, true)
  source.pragma('busy_timeout = 30000')
  source.prepare('VACUUM INTO ?').run(target)
  source.close()
  const copy = connect(target)
  copy.exec(WHILE_MADE)
  if (publishMode !== null) makeReadable(copy)
  else if (isCurrentMirror(copy)) forgetOrigin(copy)
  copy.pragma('journal_mode = DELETE')
  copy.close()
}

// Nothing is read from the file before it is whole. What is deleted is overwritten: everybody may read the file. With `legacy_alter_table` a rename
// leaves views alone: one of a user may read what is no longer there.
const WHILE_MADE =
  'PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -65536; PRAGMA legacy_alter_table = ON'

/** Removes what is true of the mirror alone: who works on it, and that nothing could be published. */
function forgetOrigin(copy: Connection): void {
  copy.exec(FORGET_PROCESSES.join(';\n'))
  runRule(copy, notePublishFailure(null))
}

/** Makes a whole copy one for readers. */
function makeReadable(copy: Connection): void {
  const arrays = copy.prepare("SELECT DISTINCT view FROM sync_known_columns WHERE view <> ''").pluck()
  for (const name of [...OF_EVERY_MIRROR, ...(arrays.all() as string[])]) makeTable(copy, name)
  for (const type of ['view', 'table'] as const)
    for (const name of relationsOf(copy, type))
      if (name.startsWith('sync_') && !OF_EVERY_MIRROR.includes(name))
        copy.exec(`DROP ${type} ${quoted(name)}`)
  copy.exec(`PRAGMA application_id = ${COPY_ID}; PRAGMA analysis_limit = ${ANALYZED_ROWS}; ANALYZE`)
}

function relationsOf(copy: Connection, type: 'table' | 'view'): string[] {
  return copy
    .prepare('SELECT name FROM sqlite_schema WHERE type = ? ORDER BY name')
    .pluck()
    .all(type) as string[]
}

/** The indexes of users on a table. */
const USER_INDEXES = `
  SELECT sql FROM sqlite_schema
  WHERE type = 'index' AND tbl_name = ? COLLATE NOCASE AND name NOT GLOB 'sync_*' AND sql IS NOT NULL
`

/** Puts a table in the place of a view, or of a table that has columns of the program's own. */
function makeTable(copy: Connection, name: string): void {
  const type = relationsOf(copy, 'view').includes(name) ? 'VIEW' : 'TABLE'
  const found = [...typesOf(copy, name)]
  const columns = found.filter(([column]) => isForPeople(name, column))
  if (columns.length === 0 || (type === 'TABLE' && columns.length === found.length)) return
  const names = columns.map(([column]) => quoted(column))
  // INT is what SQLite calls the whole numbers of a view.
  const declared = columns.map(([column, of]) => `${quoted(column)} ${of.replace(/^INT$/, 'INTEGER')}`)
  const indexes = copy.prepare(USER_INDEXES).pluck().all(name) as string[]
  copy.exec(`
    CREATE TABLE "sync_new" (${declared.join(', ')});
    INSERT INTO "sync_new" SELECT ${names.join(', ')} FROM ${quoted(name)};
    DROP ${type} ${quoted(name)};
    ALTER TABLE "sync_new" RENAME TO ${quoted(name)}
  `)
  for (const index of indexes) {
    try {
      copy.exec(index)
    } catch (error) {
      // It names a column that is not for readers.
      if (systemCode(error) !== 'SQLITE_ERROR') throw error
    }
  }
  const parents = names.slice(0, names.indexOf('"_index"') + 1)
  if (parents.length > 0)
    copy.exec(`CREATE INDEX ${quoted(`_${name}_by_parent`)} ON ${quoted(name)} (${parents.join(', ')})`)
}

fillCopy(workerData as CopyTask)
