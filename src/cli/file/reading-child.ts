import fs from 'node:fs'
import { systemCode } from '../../errors.ts'
import { serveParent } from '../../store/sqlite/child-process.ts'
import type { ReadingTask } from '../reading/read.ts'

// The process that `reading.ts` starts. What it reads goes to its standard output, notes come with its last message.

const STDOUT = 1

/** Until a full pipe is tried again. */
const FULL_PAUSE_MS = 1

/** Blocks while the pipe is full, so that memory never holds a large result whole. */
function write(bytes: Uint8Array): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let at = 0; at < bytes.length; ) {
    const written = writeSome(bytes, at)
    // Node gives its child a pipe that does not block.
    if (written === 0) Atomics.wait(pause, 0, 0, FULL_PAUSE_MS)
    at += written
  }
}

function writeSome(bytes: Uint8Array, at: number): number {
  try {
    return fs.writeSync(STDOUT, bytes, at)
  } catch (error) {
    if (systemCode(error) === 'EAGAIN') return 0
    throw error
  }
}

async function work(task: ReadingTask): Promise<string[]> {
  // The main thread, which only listens, does without it.
  const { readPieces } = await import('./reading.ts')
  const notes: string[] = []
  for await (const bytes of readPieces(task, (note) => notes.push(note))) write(bytes)
  return notes
}

await serveParent(import.meta.url, work)
