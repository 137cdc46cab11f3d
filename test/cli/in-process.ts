import { hostname } from 'node:os'
import { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { runProgram } from '../../src/cli/program.ts'
import type { Runtime } from '../../src/cli/runtime.ts'
import type { Ended } from './processes.ts'
import { logLines } from './processes.ts'

/** Where a command is typed. */
export interface Place {
  cwd: string
  env: Record<string, string>
  /** Aborted as a signal would: its reason is the signal's name. */
  signal?: AbortSignal
  newToken?: () => string
}

/**
 * Runs a command in this process, with the wiring of src/main.ts but for what is the process's own: its streams, signals and end.
 * Starting a process takes longer than most commands.
 */
export async function runInProcess(args: readonly string[], place: Place): Promise<Ended> {
  const stdout = captured()
  const stderr = captured()
  const code = await runProgram(args, createRuntime(place, stdout.stream, stderr.stream))
  return { code, signal: null, stdout: stdout.text(), stderr: stderr.text(), logs: logLines(stderr.text()) }
}

function createRuntime(
  { cwd, env, signal = new AbortController().signal, newToken }: Place,
  stdout: Writable,
  stderr: Writable,
): Runtime {
  return {
    env,
    cwd,
    pid: process.pid,
    host: hostname(),
    stdin: () => Readable.from([]),
    stdout,
    stderr,
    signal,
    now: Date.now,
    elapsed: () => performance.now(),
    sleep: (ms, stop) => sleep(ms, undefined, stop ? { signal: stop } : {}),
    yieldToEventLoop: async () => {
      await nextTurn()
      await nextTurn()
    },
    random: Math.random,
    every: (ms, task) => {
      const timer = setInterval(task, ms).unref()
      return () => clearInterval(timer)
    },
    after: (ms, task) => {
      const timer = setTimeout(task, ms).unref()
      return () => clearTimeout(timer)
    },
    newToken: newToken ?? (() => Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex')),
    dieOnSignal: () => {},
  }
}

function captured(): { stream: Writable; text: () => string } {
  const pieces: Buffer[] = []
  const stream = new Writable({
    write(piece: Buffer, _encoding, done) {
      pieces.push(piece)
      done()
    },
  })
  return { stream, text: () => Buffer.concat(pieces).toString('utf8') }
}
