import { fork } from 'node:child_process'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { InterruptedError, MirrorError, UsageError } from '../../errors.ts'

// A child process for one long task, and how its parent runs it. Its main thread only listens, since a thread inside SQLite cannot, and
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

/** What the child process sends. */
export type ChildMessage =
  | { kind: 'rows'; rows: number }
  | { kind: 'done'; result: unknown }
  | { kind: 'failed'; of: 'mirror' | 'usage' | 'other'; message: string }

/**
 * Runs a program that calls `serveParent`, and returns the result of its task. The child dies with this process, and is killed on
 * the signal to stop. Resolves after its end: its locks are free then, and all its messages are read. Throws what the task threw,
 * and InterruptedError after the signal.
 * @param task What the child gets. `file` and `what`, the mirror and the work in words, are for messages.
 */
export function runChild(
  program: URL,
  task: { file: string; what: string },
  signal: AbortSignal,
  onRows?: (rows: number) => void,
): Promise<unknown> {
  const { file, what } = task
  const child = fork(program, {
    execArgv: [],
    // Standard output is for the command's result.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  let last: ChildMessage | null = null
  const kill = () => child.kill('SIGKILL')
  return new Promise((resolve, reject) => {
    child.once('error', ({ message }) =>
      reject(new MirrorError(`${file}: ${what}: the process that does this cannot be started (${message})`)),
    )
    child.on('message', (message: ChildMessage) => {
      last = message
      if (message.kind === 'rows') onRows?.(message.rows)
    })
    child.once('close', (_code, how) => {
      signal.removeEventListener('abort', kill)
      if (last?.kind === 'done') return resolve(last.result)
      if (last?.kind === 'failed') return reject(errorIn(last))
      const undone = `${what}: the process that did this was ended${how ? ` (${how})` : ''}, and nothing has changed`
      reject(
        signal.aborted
          ? new InterruptedError(undone)
          : new MirrorError(`${file}: ${undone}; run the command again`),
      )
    })
    signal.addEventListener('abort', kill)
    if (signal.aborted) kill()
    else child.send(task)
  })
}

function errorIn({ of, message }: Extract<ChildMessage, { kind: 'failed' }>): Error {
  if (of === 'usage') return new UsageError(message)
  return of === 'mirror' ? new MirrorError(message) : new Error(message)
}
