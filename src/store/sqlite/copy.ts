import fs from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { InterruptedError, MirrorError, systemCode, UsageError } from '../../errors.ts'
import { FORGET_PROCESSES } from '../core/leases.ts'
import { notePublishFailure } from '../core/publication.ts'
import { OF_EVERY_MIRROR } from '../core/reading.ts'
import { quoted } from '../core/sql.ts'
import { type Connection, runRule } from './driver.ts'
import { freeBytes, translate, translatingErrors } from './errors.ts'
import { COPY_ID, connect, inspectHeader } from './open.ts'
import { ANALYZED_ROWS } from './runner.ts'

// The published file and snapshots: a copy is made beside its target and renamed to it when it is whole, so that readers of the old one keep
// that, and a kill leaves it.

export interface CopyTask {
  /** The mirror's file, or a copy's. */
  mirror: string
  /** Where the copy goes. */
  target: string
  /** The file's mode; null: what umask says. */
  mode: number | null
  /** When it is begun, epoch milliseconds: the file's time. */
  at: number
  /** The published file: without the workings of the program, and with tables in place of slow views. Else a copy of all, which can be put in the mirror's place. */
  isPublished: boolean
}

const THREAD = new URL(`./copy-thread${path.extname(import.meta.url)}`, import.meta.url)

/**
 * Makes a copy; SQLite works in a thread of its own. Returns its bytes. Throws UsageError for a target that must not be touched, MirrorError,
 * and InterruptedError after the signal.
 * @param name For the unfinished file: no other process ever has it.
 */
export async function copyMirror(task: CopyTask, name: string, signal: AbortSignal): Promise<number> {
  const { mirror, mode, at, isPublished } = task
  const target = isPublished ? placeOf(task.target, mode ?? 0) : task.target
  const unfinished = `${beginOfUnfinished(target)}${name}${UNFINISHED}`
  try {
    // SQLite takes an empty file for a new one. While it is made, only its owner may read it.
    fs.closeSync(fs.openSync(unfinished, 'wx', mode === null ? 0o666 : 0o600))
    removeLeft(target, fs.statSync(unfinished).mtimeMs)
    assertRoom(mirror, unfinished)
    await fillInThread({ ...task, target: unfinished }, signal)
    const handle = await open(unfinished, 'r+')
    try {
      if (mode !== null) await handle.chmod(mode)
      await handle.utimes(at / 1000, at / 1000)
      // Gigabytes may wait for the disk here.
      await handle.sync()
    } finally {
      await handle.close()
    }
    fs.renameSync(unfinished, target)
    // Makes the rename last through a loss of power.
    const folder = fs.openSync(path.dirname(target), 'r')
    fs.fsyncSync(folder)
    fs.closeSync(folder)
    return fs.statSync(target).size
  } catch (error) {
    if (systemCode(error) === 'EBUSY')
      throw new UsageError(
        `publish: ${target} cannot be replaced, since this one file is mounted: mount its folder ${path.dirname(target)} instead`,
      )
    throw translate(target, error)
  } finally {
    fs.rmSync(unfinished, { force: true })
  }
}

/** The file itself, not a link to it; its folder is made, open to those who may read files of this mode. Throws UsageError for another file than a copy. */
function placeOf(target: string, mode: number): string {
  const readable = mode & 0o444
  translatingErrors(target, () => makeFolder(path.dirname(target), 0o700 | readable | (readable >> 2)))
  const place = fs.existsSync(target) ? fs.realpathSync(target) : target
  if (mayReplace(place)) return place
  throw new UsageError(
    `publish: ${target} exists and is not a copy of a mirror, so it is left as it is; name another file, or move it away`,
  )
}

/** Whatever umask says. */
function makeFolder(folder: string, mode: number): void {
  if (fs.existsSync(folder)) return
  makeFolder(path.dirname(folder), mode)
  fs.mkdirSync(folder)
  fs.chmodSync(folder, mode)
}

/** Whether the published file may be put here: there is nothing, an empty file, or one that was published. */
export function mayReplace(file: string): boolean {
  const header = inspectHeader(file)
  return header.kind === 'sqlite' ? header.applicationId === COPY_ID : header.kind !== 'other'
}

/** Less than this would not last for the copy, and the syncs need the room. */
function assertRoom(mirror: string, copy: string): void {
  const needed = [mirror, `${mirror}-wal`]
    .map((file) => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size)
  if ((freeBytes(copy) ?? needed) < needed) throw noRoom(mirror)
}

function noRoom(mirror: string): MirrorError {
  return new MirrorError(
    `there is not enough room for a copy of ${mirror}: make room, or name a file on another disk`,
  )
}

const UNFINISHED = '.unfinished'

function beginOfUnfinished(target: string): string {
  return path.join(path.dirname(target), `.${path.basename(target)}.`)
}

/** A younger file may belong to a process that is at work on it. */
const LEFT_AFTER_MS = 3_600_000

/** Deletes what killed processes have left: it is as large as the mirror. `now`: epoch milliseconds, of the file system. */
function removeLeft(target: string, now: number): void {
  const folder = path.dirname(target)
  for (const file of fs.readdirSync(folder).map((name) => path.join(folder, name))) {
    if (!file.startsWith(beginOfUnfinished(target)) || !file.endsWith(UNFINISHED)) continue
    const stat = fs.lstatSync(file, { throwIfNoEntry: false })
    if (stat && now - stat.mtimeMs > LEFT_AFTER_MS) fs.rmSync(file, { force: true })
  }
}

async function fillInThread(task: CopyTask, signal: AbortSignal): Promise<void> {
  const worker = new Worker(THREAD, { workerData: task })
  await new Promise<void>((resolve, reject) => {
    worker.once('exit', () => resolve())
    worker.once('error', (error) => {
      const isFull = systemCode(error) === 'SQLITE_FULL'
      reject(isFull ? noRoom(task.mirror) : translate(task.mirror, error))
    })
    // SQLite goes on until the process ends; nothing waits for it.
    const stop = () => reject(new InterruptedError('stopped; the copy was not made'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  }).finally(() => void worker.terminate())
}

/** The work of the thread: fills an empty file. All of it is of one moment; syncs can write meanwhile, and their write-ahead log grows. */
export function fillCopy({ mirror, target, isPublished }: CopyTask): void {
  // Not by `openForReading`, which would close a handle of the mirror, and so drop the locks of this process.
  const source = connect(mirror, true)
  source.pragma('busy_timeout = 30000')
  source.prepare('VACUUM INTO ?').run(target)
  source.close()
  const copy = connect(target)
  copy.exec(WHILE_MADE)
  if (isPublished) makeReadable(copy)
  // Not in the copy of a published file.
  else if (namesOf(copy, 'table').includes('sync_workers')) forgetOrigin(copy)
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
  const collections = copy.prepare('SELECT name FROM sync_collections').pluck().all() as string[]
  for (const [name, columns] of Object.entries(OF_EVERY_MIRROR)) makeTable(copy, name, columns)
  // No collection's name has two underscores.
  for (const view of namesOf(copy, 'view'))
    if (collections.some((name) => view.startsWith(`${name}__`))) makeTable(copy, view, null)
  for (const type of ['view', 'table'] as const)
    for (const name of namesOf(copy, type))
      if (name.startsWith('sync_') && !(name in OF_EVERY_MIRROR)) copy.exec(`DROP ${type} ${quoted(name)}`)
  copy.exec(`PRAGMA application_id = ${COPY_ID}; PRAGMA analysis_limit = ${ANALYZED_ROWS}; ANALYZE`)
}

function namesOf(copy: Connection, type: 'table' | 'view'): string[] {
  return copy
    .prepare('SELECT name FROM sqlite_schema WHERE type = ? ORDER BY name')
    .pluck()
    .all(type) as string[]
}

/**
 * Puts a table in the place of a view, or of a table that has further columns. `wanted`: its columns; null: all. A view of a user that reads what is
 * no longer there stays.
 */
function makeTable(copy: Connection, name: string, wanted: readonly string[] | null): void {
  const type = namesOf(copy, 'view').includes(name) ? 'VIEW' : 'TABLE'
  try {
    const found = copy.prepare('SELECT name, type FROM pragma_table_info(?)').all(name) as Column[]
    const columns = found.filter((column) => wanted?.includes(column.name) ?? true)
    if (columns.length === 0 || (type === 'TABLE' && columns.length === found.length)) return
    const names = columns.map((column) => quoted(column.name))
    // INT is what SQLite calls the whole numbers of a view.
    const declared = columns.map(
      (column, index) => `${names[index]} ${column.type.replace(/^INT$/, 'INTEGER')}`,
    )
    copy.exec(`
      CREATE TABLE "sync_new" (${declared.join(', ')});
      INSERT INTO "sync_new" SELECT ${names.join(', ')} FROM ${quoted(name)};
      DROP ${type} ${quoted(name)};
      ALTER TABLE "sync_new" RENAME TO ${quoted(name)}
    `)
    const parents = names.slice(0, names.indexOf('"_index"') + 1)
    if (parents.length > 0)
      copy.exec(`CREATE INDEX ${quoted(`_${name}_by_parent`)} ON ${quoted(name)} (${parents.join(', ')})`)
  } catch (error) {
    copy.exec('DROP TABLE IF EXISTS "sync_new"')
    if (systemCode(error) !== 'SQLITE_ERROR') throw error
  }
}

interface Column {
  name: string
  type: string
}
