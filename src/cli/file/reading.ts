import { type ChildProcess, fork } from 'node:child_process'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { JobError } from '../../errors.ts'
import { type ChildMessage, errorIn } from '../../store/sqlite/child-process.ts'
import { assertReadingSql, createReader, type Parameters } from '../../store/sqlite/read/reader.ts'
import type { Tell } from '../output/formats/format.ts'
import { type QueryWork, type ReadableMirror, type ReadingTask, written } from '../reading/read.ts'
import type { ReadingOptions, WritePieces } from '../reading/run-reading.ts'
import type { Runtime } from '../runtime.ts'
import { isNotMadeYet, openMirror } from './mirror.ts'

const READING_CHILD = new URL(`./reading-child${path.extname(import.meta.url)}`, import.meta.url)

/** Reads in a child process where this one goes on after a stop: SQLite cannot be interrupted, but a process can be killed. */
export async function readFile(
  { signal, stderr }: Runtime,
  { task, isToFile, limitMs, late }: ReadingOptions,
  write: WritePieces,
): Promise<void> {
  const tell = (note: string) => stderr.write(`${note}\n`)
  // A signal ends this process at once, so it can read here, which starts in half the time.
  if (!isToFile && limitMs === null) return write(readPieces(task, tell))
  const child = fork(READING_CHILD, {
    // Rows are short-lived: a large space for new objects would only cost memory.
    execArgv: ['--max-semi-space-size=4'],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const pieces = outputOf(child, tell)
  // While the child lives, `write` waits for its next piece.
  const kill = () => child.kill('SIGKILL')
  for (const stop of [signal, late]) stop.addEventListener('abort', kill)
  // The time may be over already.
  if (late.aborted) kill()
  try {
    // If it cannot be sent, the end of the child says so.
    child.send(task, () => {})
    await write(pieces)
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
  }
}

/** What the child writes. Throws at its end unless it has written all. Listens from now on, so that no event is missed. */
function outputOf(child: ChildProcess, tell: Tell): AsyncIterable<Uint8Array> {
  let end = null as ChildMessage | null
  let broken: Error | null = null
  child.on('message', (message: ChildMessage) => {
    end = message
  })
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
    child.once('error', (error) => {
      broken = error
      resolve()
    })
  })
  // Piped at once: Node drops what is unread when the child ends.
  const output = child.stdout?.pipe(new PassThrough())
  async function* pieces(): AsyncIterable<Uint8Array> {
    if (output) yield* output as AsyncIterable<Uint8Array>
    await closed
    if (end?.kind !== 'done') throw childError(end, broken)
    for (const note of end.result as string[]) tell(note)
  }
  return pieces()
}

function childError(end: ChildMessage | null, broken: Error | null): Error {
  if (end?.kind !== 'failed') {
    const why = broken ? ` (${broken.message})` : ''
    return new JobError(
      'INTERNAL',
      `the process that reads the mirror has ended before its time${why}; was it killed, or is there no memory left?`,
    )
  }
  return errorIn(end)
}

/** Does the task on a mirror in a file, and yields what it writes. Throws UsageError and MirrorError. */
export async function* readPieces(task: ReadingTask, tell: Tell): AsyncIterable<Uint8Array> {
  const { database, isCopy, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, valuesOf(work.parameters))
    else if (!isCopy) {
      const { assertNameOf } = await import('../reading/named.ts')
      assertNameOf(work, task.configured)
    }
  }
  const connection = openMirror(database, isCopy)
  const reader = createReader(connection, database)
  // All rows are one batch, which is read while it is written.
  const mirror: ReadableMirror = {
    ...reader,
    query({ sql, parameters }) {
      const { rows, ...head } = reader.query(sql, valuesOf(parameters))
      return { ...head, batches: [rows] }
    },
    select: (statement) => [reader.select(statement)],
  }
  try {
    yield* await written(mirror, task, tell)
  } finally {
    reader.close()
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

function valuesOf(parameters: QueryWork['parameters']): Parameters {
  return new Map(parameters.map(([name, value]) => [name, parameterValue(value)]))
}

/**
 * A text that SQLite itself would write for a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
