import fs from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UsageError } from '../errors.ts'
import { chunked } from './output.ts'
import { realPath } from './real-path.ts'

/** A file that a command was asked to write. */
export interface OutputFile {
  /** As messages name it: `--output /home/you/orders.csv`. */
  shown: string
  /** Absolute, without links: the file that is written, not a link that leads there. */
  place: string
  /** Whether it can be replaced whole. A device or a pipe (`/dev/stdout`) is written to as it is. */
  isRegular: boolean
  /** The file that is there already. */
  before: fs.Stats | null
}

/** Looks at the file that `option` names (absolute). Throws UsageError where that is a folder, or cannot be reached. */
export function outputFile(option: string, file: string): OutputFile {
  const shown = `${option} ${file}`
  try {
    // The kernel follows no link that another user has put into a folder for all (/tmp): this throws then.
    const before = fs.statSync(file, { throwIfNoEntry: false }) ?? null
    if (before?.isDirectory()) throw new UsageError(`${shown} is a folder; name a file in it`)
    return { shown, place: realPath(file), isRegular: before?.isFile() ?? true, before }
  } catch (error) {
    throw explained(shown, error)
  }
}

/** Writes text piece by piece, as the whole of the file or not at all. Throws UsageError, and AbortError on the signal. */
export async function writeOutput(
  output: OutputFile,
  pieces: Iterable<string>,
  newToken: () => string,
  signal?: AbortSignal,
): Promise<void> {
  try {
    if (!output.isRegular) return await pipeline(chunked(pieces), fs.createWriteStream(output.place))
    await replaceWhole(output, newToken(), (handle) =>
      pipeline(chunked(pieces), textInto(handle), signal ? { signal } : {}),
    )
  } catch (error) {
    throw explained(output.shown, error)
  }
}

/** Written beside the file and then moved there: nobody ever finds half of it, and what was there stays until then. */
async function replaceWhole(
  { place, before }: OutputFile,
  token: string,
  write: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  // A name that nobody can foresee, and a file that nobody made before: in a shared folder it could be a link.
  const unfinished = path.join(path.dirname(place), `.admin-mirror-${token}.unfinished`)
  const handle = await open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, before ? 0o600 : 0o666)
  try {
    if (before) await makeLike(before, handle)
    await write(handle)
    await handle.sync()
    await handle.close()
    await rename(unfinished, place)
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(unfinished, { force: true })
    throw error
  }
}

/** Leaves the file open. A stream that the handle itself makes would have to be closed before the handle can be. */
function textInto({ fd }: FileHandle): fs.WriteStream {
  return fs.createWriteStream('', { fd, autoClose: false })
}

/** Whoever could read the file before can read the new one, and nobody else. */
async function makeLike({ mode, uid, gid }: fs.Stats, handle: FileHandle): Promise<void> {
  const own = await handle.stat()
  // Apart, since others than root may change the group and not the owner. Where the group stays ours, it gets no rights.
  const isOurGroup = own.gid !== gid && !(await succeeds(handle.chown(own.uid, gid)))
  if (own.uid !== uid) await succeeds(handle.chown(uid, isOurGroup ? own.gid : gid))
  await handle.chmod(mode & (isOurGroup ? 0o707 : 0o777))
}

function succeeds(task: Promise<void>): Promise<boolean> {
  return task.then(
    () => true,
    () => false,
  )
}

function explained(shown: string, error: unknown): unknown {
  const isOfFiles = error instanceof Error && 'syscall' in error
  return isOfFiles ? new UsageError(`${shown} cannot be written: ${error.message}`) : error
}
