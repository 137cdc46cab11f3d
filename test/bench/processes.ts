import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { ServerOptions } from './page-server.ts'

const AT_EXIT = fileURLToPath(new URL('./at-exit.ts', import.meta.url))
const SERVER = fileURLToPath(new URL('./page-server.ts', import.meta.url))

/** Without variables that change how a measured process behaves. */
const CLEAN_ENV = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }

export interface Measured {
  /** From its start to its end. */
  ms: number
  /** The peak of its resident set; NaN unless it was measured. */
  peakKb: number
  stdout: string
}

const alive = new Set<ChildProcess>()

/**
 * Runs a Node program in a process of its own, with the Node that runs this. Throws if it does not exit with 0.
 * @param options.peakIn A folder, if the peak of memory is to be measured, too.
 */
export async function measure(
  args: readonly string[],
  { peakIn, env: added = {} }: { peakIn?: string; env?: Record<string, string> } = {},
): Promise<Measured> {
  const peakFile = peakIn === undefined ? null : path.join(peakIn, 'peak')
  const before = peakFile === null ? [] : ['--import', AT_EXIT]
  const env = { ...CLEAN_ENV, ...added, ...(peakFile !== null && { PEAK_FILE: peakFile }) }
  const began = performance.now()
  const child = spawn(process.execPath, [...before, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  alive.add(child)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  const ms = performance.now() - began
  alive.delete(child)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stderr}`)
  return { ms, peakKb: peakFile === null ? Number.NaN : Number(fs.readFileSync(peakFile, 'utf8')), stdout }
}

/** A process that runs until it is told to stop. Throws if that does not end it with 0. */
export interface Lasting {
  isAlive(): boolean
  stop(): Promise<{ cpuMs: number }>
}

/** @param cpuFile Where the processor time is written that it took. */
export function startLasting(args: readonly string[], cpuFile: string, env: Record<string, string>): Lasting {
  const child = spawn(process.execPath, ['--import', AT_EXIT, ...args], {
    env: { ...CLEAN_ENV, ...env, CPU_FILE: cpuFile },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  alive.add(child)
  const ended = Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number | null]>])
  return {
    isAlive: () => child.exitCode === null && child.signalCode === null,
    async stop() {
      child.kill('SIGTERM')
      const [stderr, [code]] = await ended
      alive.delete(child)
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stderr}`)
      return { cpuMs: Number(fs.readFileSync(cpuFile, 'utf8')) }
    },
  }
}

/** Ends what still runs, at once. */
export function killMeasured(): void {
  for (const child of alive) child.kill('SIGKILL')
}

export interface Serving {
  /** The address of the API. */
  url: string
  /** The address of the first page. */
  list: string
}

/** Runs `task` beside a server of orders. */
export async function whileServing<T>(
  options: ServerOptions,
  task: (serving: Serving) => Promise<T>,
): Promise<T> {
  const child = fork(SERVER, [JSON.stringify(options)], { execArgv: [], env: CLEAN_ENV })
  const ended = once(child, 'exit')
  try {
    const [serving] = await Promise.race([
      once(child, 'message') as Promise<[Serving]>,
      ended.then(() => Promise.reject(new Error('the server of pages ended'))),
    ])
    return await task(serving)
  } finally {
    if (child.connected) child.disconnect()
    await ended
  }
}
