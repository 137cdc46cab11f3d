import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { createIsAlive } from '../../src/cli/process-name.ts'
import { runProgram } from '../../src/cli/program.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import { createTranscript, type Running } from './processes.ts'

/** Where a command is typed. */
export interface Place {
  cwd: string
  env: Record<string, string>
  clock?: Clock
  /** What standard input holds; nothing otherwise. */
  stdin?: string | Uint8Array
  /** Standard output is a terminal of so many columns. */
  columns?: number
}

/** What the command takes for the time. */
export interface Clock {
  now: () => number
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

const REAL: Clock = { now: Date.now, sleep: (ms, signal) => sleep(ms, undefined, signal ? { signal } : {}) }

/** The time is the real one, and no sleep is long: who waits for something looks more often. */
export const RESTLESS: Clock = { ...REAL, sleep: (ms, signal) => REAL.sleep(Math.min(ms, 20), signal) }

/**
 * Starts a command in this process, with the wiring of src/main.ts but for what is the process's own: its streams, signals and end.
 * Starting a process takes longer than most commands. A signal is passed on as src/main.ts does with the first one.
 */
export function startInProcess(args: readonly string[], place: Place): Running {
  const { cwd, env, clock = REAL, stdin = '', columns } = place
  const stop = new AbortController()
  const { onStdout, onStderr, end, ...transcript } = createTranscript()
  const [stdout, stderr] = [writableTo(onStdout), writableTo(onStderr)]
  if (columns !== undefined) Object.assign(stdout, { isTTY: true, columns })
  const processName = `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`
  const runtime: Runtime = {
    env,
    cwd,
    processName,
    isAlive: (name) => (dead.has(name) ? false : isAlive(name)),
    stdin: () => Readable.from([Buffer.from(stdin)]),
    stdout,
    stderr,
    signal: stop.signal,
    now: clock.now,
    // What waits by it waits as the clock of the test goes.
    elapsed: clock.now,
    sleep: clock.sleep,
    yieldToEventLoop: async () => {
      await nextTurn()
      await nextTurn()
    },
    random: Math.random,
    every: (ms, task) => {
      const timer = setInterval(task, ms).unref()
      return () => clearInterval(timer)
    },
    randomHex: () => randomBytes(16).toString('hex'),
    dieOnSignal: () => {},
  }
  const ended = runProgram(args, runtime).finally(() => dead.add(processName))
  const kill = (name: NodeJS.Signals) => stop.abort(name)
  return {
    ...transcript,
    kill,
    killAll: kill,
    closeStdout: () => stdout.destroy(),
    closeStderr: () => stderr.destroy(),
    ended: ended.then((code) => end(code, null)),
  }
}

/** The names of commands in this process that have ended. */
const dead = new Set<string>()

const isAlive = createIsAlive(hostname(), (pid) => process.kill(pid, 0))

function writableTo(onText: (text: string) => void): Writable {
  const decoder = new StringDecoder('utf8')
  return new Writable({
    write(piece: Buffer, _encoding, done) {
      onText(decoder.write(piece))
      done()
    },
  })
}
