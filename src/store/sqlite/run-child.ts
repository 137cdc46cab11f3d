import { fork } from 'node:child_process'
import { InterruptedError, MirrorError, UsageError } from '../../errors.ts'

/** What the child process sends. */
export type ChildMessage =
  | { kind: 'rows'; rows: number }
  | { kind: 'done'; result: unknown }
  | { kind: 'failed'; of: 'mirror' | 'usage' | 'other'; message: string }

export interface ChildOptions {
  /** For messages: the mirror, and what the child does. */
  file: string
  what: string
  signal: AbortSignal
  onRows?: (rows: number) => void
}

/**
 * Runs a program that calls `serveParent`, and returns the result of its task. The child dies with this process, and is killed on
 * the signal to stop. Resolves after its end: its locks are free then, and all its messages are read. Throws what the task threw,
 * and InterruptedError after the signal.
 */
export function runChild(program: URL, task: object, options: ChildOptions): Promise<unknown> {
  const { file, what, signal, onRows } = options
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
      if (last?.kind === 'failed') return reject(failureOf(last))
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

function failureOf({ of, message }: Extract<ChildMessage, { kind: 'failed' }>): Error {
  if (of === 'usage') return new UsageError(message)
  return of === 'mirror' ? new MirrorError(message) : new Error(message)
}
