import { hostname } from 'node:os'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { EXIT_OF_SIGNAL, internalText } from './cli/exit-code.ts'
import { createIsAlive, processName } from './cli/process-name.ts'
import { runProgram } from './cli/program.ts'

const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** The first signal asks the program to stop; a second one ends it at once, which is safe at any moment. */
function listenForSignals(): AbortSignal {
  const stop = new AbortController()
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(EXIT_OF_SIGNAL[signal])
      stop.abort(signal)
    })
  }
  return stop.signal
}

/** `admin-mirror query ... | head` closes standard output early: then nothing is left to do. */
function endWithClosedOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`standard output cannot be written: ${error.message}\n`, () => process.exit(1))
  })
  // Ignore a closed stderr: the walk should still finish.
  process.stderr.on('error', () => {})
}

/** Node would print every field of an uncaught error, and a network error may hold the token. */
function endOnUncaught(): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      process.stderr.write(internalText(error))
      process.exit(1)
    })
  }
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

const stop = listenForSignals()
endWithClosedOutput()
endOnUncaught()

// Node loads the global on first use, and most commands need no token.
const randomHex = () => crypto.randomUUID().replaceAll('-', '')

const exitCode = await runProgram(process.argv.slice(2), {
  env: process.env,
  cwd: process.cwd(),
  processName: processName(hostname(), process.pid, randomHex),
  isAlive: createIsAlive(hostname(), (pid) => process.kill(pid, 0)),
  stdin: () => process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: stop,
  now: Date.now,
  elapsed: () => performance.now(),
  // A longer timer would end at once. Callers that wait for that long check the clock again anyway.
  sleep: (ms, signal) => sleep(Math.min(ms, 2 ** 31 - 1), undefined, signal ? { signal } : {}),
  yieldToEventLoop: async () => {
    // The first turn may have looked for bytes before the call; the second one looks after it, and in it a request leaves.
    await nextTurn()
    await nextTurn()
  },
  random: Math.random,
  every: (ms, task) => {
    const timer = setInterval(task, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
  randomHex,
  dieOnSignal: () => {
    for (const signal of SIGNALS) process.removeAllListeners(signal)
    // For a signal that came before the listener did: nothing else would act on it.
    if (stop.aborted) process.kill(process.pid, stop.reason as NodeJS.Signals)
  },
})

await Promise.all([flushed(process.stdout), flushed(process.stderr)])
process.exit(exitCode)
