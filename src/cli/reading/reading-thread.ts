import fs from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { JobError, MirrorError, systemCode, UsageError } from '../../errors.ts'
import type { ReadingEnd, ReadingTask } from './read.ts'
import { read } from './read.ts'

// The thread that reading-child.js starts.

const STDOUT = 1

/** Until a full pipe is tried again. */
const FULL_PAUSE_MS = 1

function failed(error: unknown): ReadingEnd {
  if (!(error instanceof Error)) return { kind: 'failed', of: 'other', message: String(error) }
  const { message, stack = message } = error
  if (error instanceof UsageError) return { kind: 'failed', of: 'usage', message }
  if (error instanceof MirrorError) return { kind: 'failed', of: 'mirror', message }
  if (error instanceof JobError) return { kind: 'failed', of: 'job', code: error.code, message }
  return { kind: 'failed', of: 'other', message, stack }
}

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

async function work(task: ReadingTask): Promise<ReadingEnd> {
  try {
    const notes: string[] = []
    for await (const bytes of read(task, (note) => notes.push(note))) write(bytes)
    return { kind: 'done', notes }
  } catch (error) {
    return failed(error)
  }
}

parentPort?.postMessage(await work(workerData as ReadingTask), [])
