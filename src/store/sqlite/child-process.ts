import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { MirrorError, UsageError } from '../../errors.ts'
import type { ChildMessage } from './run-child.ts'

// What a process that run-child.ts starts is made of. Its main thread only listens, since a thread inside SQLite cannot, and
// the process must end at once when its parent does.

/**
 * Does the one task that the parent sends, in a thread of its own, and sends back what `work` returns. Call it once, at the end of
 * the program of the child. `prepare` runs before, in the main thread.
 */
export async function serveParent<T>(
  program: string,
  work: (task: T, onRows: (rows: number) => void) => Promise<unknown>,
  prepare: (task: T) => void = () => {},
): Promise<void> {
  if (isMainThread) return listen(program, prepare)
  const onRows = (rows: number) => post({ kind: 'rows', rows })
  post(await work(workerData as T, onRows).then((result): ChildMessage => ({ kind: 'done', result }), failed))
}

function listen<T>(program: string, prepare: (task: T) => void): void {
  // A diagnostic report of Node would hold the environment, and so the tokens.
  if (process.report) process.report.excludeEnv = true
  process.on('disconnect', die)
  if (!process.connected) die()
  // A terminal or a service manager signals this process too; its parent decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.once('message', (task: T) => {
    prepare(task)
    const thread = new Worker(new URL(program), { workerData: task })
    thread.on('message', send)
    thread.on('error', (error) => send(failed(error)))
  })
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function send(message: ChildMessage): void {
  process.send?.(message, () => {
    if (message.kind !== 'rows') process.exit(0)
  })
}

function failed(error: unknown): ChildMessage {
  const message = error instanceof Error ? error.message : String(error)
  const of = error instanceof MirrorError ? 'mirror' : error instanceof UsageError ? 'usage' : 'other'
  return { kind: 'failed', of, message }
}

function post(message: ChildMessage): void {
  parentPort?.postMessage(message, [])
}
