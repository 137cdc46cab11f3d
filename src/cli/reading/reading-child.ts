import fs from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { JobError, MirrorError, UsageError } from '../../errors.ts'
import { chunked } from '../output/write-all.ts'
import { read } from './read.ts'
import type { ReadingEnd, ReadingTask } from './task.ts'

// The process that run-reading.ts starts. Its main thread only listens, since a thread inside SQLite cannot,
// and the process must end at once when its parent does.

const STDOUT = 1

/** Until a full pipe is tried again. */
const FULL_PAUSE_MS = 1

function listen(): void {
  // A diagnostic report of Node would hold the environment, and so the tokens.
  if (process.report) process.report.excludeEnv = true
  process.on('disconnect', die)
  if (!process.connected) die()
  // A terminal signals this process too; its parent decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.once('message', (task: ReadingTask) => {
    // Rows are short-lived: a large space for new objects would only cost memory.
    const thread = new Worker(new URL(import.meta.url), {
      workerData: task,
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    })
    thread.on('message', send)
    thread.on('error', (error) => send(failed(error)))
  })
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function send(end: ReadingEnd): void {
  process.send?.(end, () => process.exit(0))
}

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
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0
    throw error
  }
}

function work(task: ReadingTask): ReadingEnd {
  try {
    for (const bytes of chunked(read(task))) write(bytes)
    return { kind: 'done' }
  } catch (error) {
    return failed(error)
  }
}

if (isMainThread) listen()
else parentPort?.postMessage(work(workerData as ReadingTask), [])
