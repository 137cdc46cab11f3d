import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from './cli/program.ts'

const EXIT_OF_SIGNAL = { SIGINT: 130, SIGTERM: 143 }

/** The first signal asks the program to stop; a second one ends it where it is, which is safe at any moment. */
function listenForSignals(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(EXIT_OF_SIGNAL[signal])
      stop.abort(signal)
    })
  }
  return stop.signal
}

/** Started by a process that only stands in for us (src/bin.js): when that one is killed, so are we. */
function dieWithParent(): void {
  if (!process.env.ADMIN_MIRROR_NODE || !process.channel) return
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  process.channel.unref()
}

/** `admin-mirror query ... | head` closes our output early: nobody reads on, so there is nothing left to do. */
function endWhenNobodyReads(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1)
  })
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

dieWithParent()
endWhenNobodyReads()

const exitCode = await runProgram(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  stdout: process.stdout,
  stderr: process.stderr,
  signal: listenForSignals(),
  now: Date.now,
  // A timer that is asked for more does not wait at all; who waits that long looks at the clock again anyway.
  sleep: (ms, signal) => sleep(Math.min(ms, 2 ** 31 - 1), undefined, signal ? { signal } : {}),
  random: Math.random,
  every: (ms, task) => {
    const timer = setInterval(task, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  newToken: () => randomBytes(16).toString('hex'),
  dieOnSignal: () => {
    process.removeAllListeners('SIGINT')
    process.removeAllListeners('SIGTERM')
  },
})

await Promise.all([flushed(process.stdout), flushed(process.stderr)])
process.exit(exitCode)
