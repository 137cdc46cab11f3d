import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runProgram } from './cli/program.ts'

/** A terminal that is closed sends SIGHUP. */
const EXIT_OF_SIGNAL = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }
const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

// A service manager signals all processes of a service, and src/bin.js hands its signal on: it comes twice, and means once.
const SAME_SIGNAL_MS = process.env.ADMIN_MIRROR_NODE ? 1000 : 0

/** The first signal asks the program to stop; a second one ends it where it is, which is safe at any moment. */
function listenForSignals(): AbortSignal {
  const stop = new AbortController()
  let stoppedAt = 0
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (!stop.signal.aborted) {
        stoppedAt = Date.now()
        stop.abort(signal)
      } else if (Date.now() - stoppedAt >= SAME_SIGNAL_MS) process.exit(EXIT_OF_SIGNAL[signal])
    })
  }
  return stop.signal
}

/** `admin-mirror query ... | head` closes our output early: nobody reads on, so there is nothing left to do. */
function endWhenNobodyReads(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`standard output cannot be written: ${error.message}\n`, () => process.exit(1))
  })
  // A log that nobody reads any more is no reason to leave a walk unfinished.
  process.stderr.on('error', () => {})
}

/** Node would print every field of an error that nobody caught; of a network error that may be the token. */
function endOnUnforeseen(): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      const text =
        error instanceof Error ? (error.stack ?? error.message) : 'something was thrown that is no error'
      process.stderr.write(`INTERNAL: ${text}\n`)
      process.exit(1)
    })
  }
}

/**
 * V8 doubles the space for new objects, up to 128 MB, as long as garbage comes fast; pages are nothing but garbage, and gain
 * little by it. With the 4 MB that it has now a sync of 100,000 orders peaks at 230 MB instead of 345, and takes 4 % longer;
 * with no threads for so small a space, 2 %.
 */
function boundNewSpace(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--no-parallel-scavenge')
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

boundNewSpace()
endWhenNobodyReads()
endOnUnforeseen()

const exitCode = await runProgram(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  pid: process.pid,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: listenForSignals(),
  now: Date.now,
  // A timer that is asked for more does not wait at all; who waits that long looks at the clock again anyway.
  sleep: (ms, signal) => sleep(Math.min(ms, 2 ** 31 - 1), undefined, signal ? { signal } : {}),
  turn: async () => {
    // A request leaves in the second turn: before that, bytes that wait on its connection are read.
    await nextTurn()
    await nextTurn()
  },
  random: Math.random,
  every: (ms, task) => {
    const timer = setInterval(task, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  // The global is loaded when it is first used, and most commands need none.
  newToken: () => Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex'),
  dieOnSignal: () => {
    for (const signal of SIGNALS) process.removeAllListeners(signal)
  },
})

await Promise.all([flushed(process.stdout), flushed(process.stderr)])
process.exit(exitCode)
