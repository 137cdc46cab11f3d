import { spawn, spawnSync } from 'node:child_process'
import path from 'node:path'
import Database from 'better-sqlite3'
import { atEndOfFile } from './at-end-of-file.ts'
import type { Fault } from './inject-faults.ts'
import { createWatch } from './watch.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
export const BIN = path.join(ROOT, 'src/bin.js')

/** The Node that the lockfile names. The one that runs the tests need not be it. */
const LOCKED_NODE = path.join(ROOT, 'node_modules/.bin/node')

export interface LogLine {
  level: string
  msg: string
  organization?: string
  collection?: string
  [field: string]: unknown
}

/** How a process ended, and all that it wrote. */
export interface Ended {
  /** Null when a signal ended it. */
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
  /** The lines of standard error that are JSON. */
  logs: LogLine[]
}

/** A command that runs, in a process of its own or in this one. */
export interface Running {
  kill(signal: NodeJS.Signals): void
  /** Signals it and all processes that it started, as a service manager does. */
  killAll(signal: NodeJS.Signals): void
  /** Stops reading its standard output, as `| head` does. */
  closeStdout(): void
  closeStderr(): void
  /** The first line of standard output. */
  firstLine(): Promise<string>
  /**
   * The first line of the log, past or to come, that `isMeant` is true for; of `count` of them the last. Rejects when the process
   * ends without it.
   */
  log(isMeant: (line: LogLine) => boolean, count?: number): Promise<LogLine>
  ended: Promise<Ended>
}

export interface StartOptions {
  cwd: string
  env?: Record<string, string>
  /** A program that starts it, with its options: prlimit, setpriv. */
  through?: readonly string[]
}

/** Starts admin-mirror as a user does: a process of its own, with nothing of the test's environment but the path and the compiled code. */
export function startProgram(args: readonly string[], options: StartOptions): Running {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env
  const env = { PATH, HOME, NODE_COMPILE_CACHE, ...options.env }
  const [program = '', ...rest] = [...(options.through ?? []), LOCKED_NODE, BIN, ...args]
  const child = spawn(program, rest, {
    cwd: options.cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own.
    detached: true,
  })
  const { onStdout, onStderr, end, ...transcript } = createTranscript()
  child.stdout.setEncoding('utf8').on('data', onStdout)
  child.stderr.setEncoding('utf8').on('data', onStderr)
  atEndOfFile(() => child.kill('SIGKILL'))
  return {
    ...transcript,
    kill: (signal) => child.kill(signal),
    killAll: (signal) => process.kill(-(child.pid ?? 0), signal),
    closeStdout: () => child.stdout.destroy(),
    closeStderr: () => child.stderr.destroy(),
    ended: new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve(end(code, signal)))
    }),
  }
}

/** What a command writes, to be waited for. */
export function createTranscript() {
  let stdout = ''
  let stderr = ''
  let hasEnded = false
  const { changed, until } = createWatch()

  /** What `look` finds in the output, as soon as it is there. */
  function found<T>(look: () => T | undefined): Promise<T> {
    return until(() => {
      const value = look()
      if (value === undefined && hasEnded)
        throw new Error(`The process ended without it:\n${stderr}\n${stdout}`)
      return value
    })
  }

  return {
    onStdout(text: string) {
      stdout += text
      changed()
    },
    onStderr(text: string) {
      stderr += text
      changed()
    },
    end(code: number | null, signal: NodeJS.Signals | null): Ended {
      hasEnded = true
      changed()
      return { code, signal, stdout, stderr, logs: logLines(stderr) }
    },
    firstLine: () => found(() => (stdout.includes('\n') ? stdout.slice(0, stdout.indexOf('\n')) : undefined)),
    log: (isMeant: (line: LogLine) => boolean, count = 1) =>
      found(() => logLines(stderr).filter(isMeant)[count - 1]),
  }
}

/** Sends a signal to a command, and waits for its end. */
export function stop(running: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
  running.kill(signal)
  return running.ended
}

/** Every whole line that is a JSON object. */
export function logLines(text: string): LogLine[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine)
}

/** Stops a process (SIGSTOP) between two of its transactions: within one it would keep all others from the file. */
export async function halt(running: Running, mirror: string): Promise<void> {
  const connection = new Database(mirror, { timeout: 0 })
  for (;;) {
    running.killAll('SIGSTOP')
    try {
      connection.exec('BEGIN IMMEDIATE; ROLLBACK')
      connection.close()
      return
    } catch {
      running.killAll('SIGCONT')
      await new Promise((wake) => setTimeout(wake, 20))
    }
  }
}

/** The environment of a process, and of those that it starts, in which this happens. */
export function faultsOf(...faults: Fault[]): { NODE_OPTIONS: string; FAULTS: string } {
  const module = path.resolve(import.meta.dirname, 'inject-faults.ts')
  return { NODE_OPTIONS: `--import=${module}`, FAULTS: JSON.stringify(faults) }
}

/** util-linux's way to run a command on a terminal of its own. */
export const ON_TERMINAL = ['sh', '-c', 'exec script -qec "$*" /dev/null', 'sh']
export const HAS_TERMINALS = runs('script', '--version')

/** Runs a program of the system; whether it ended well, or is there at all. */
export function runs(program: string, ...options: string[]): boolean {
  return spawnSync(program, options).status === 0
}

/** The same, where the test cannot go on without it. */
export function mustRun(program: string, ...options: string[]): void {
  const { status, stderr } = spawnSync(program, options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${options.join(' ')}: ${stderr}`)
}

export const IS_ROOT = process.getuid?.() === 0

/** A namespace of processes of its own, as each container on a machine has one. */
export const CONTAINER = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']
export const HAS_CONTAINERS = runs('unshare', ...CONTAINER.slice(1), 'true')
