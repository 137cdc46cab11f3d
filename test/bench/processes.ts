import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const PEAK_MEMORY = fileURLToPath(new URL('./peak-memory.ts', import.meta.url))

/** The program, as people start it. */
export const BIN = fileURLToPath(new URL('../../src/bin.js', import.meta.url))

/** Nothing of ours changes how a measured process behaves. */
export const CLEAN_ENV = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }

export interface Measured {
  /** From its start to its end. */
  ms: number
  /** Its peak resident set in kB; null unless it was asked for. */
  peakKb: number | null
  /** Its first lines. */
  stdout: string
}

export interface MeasureOptions {
  /** Where to keep a file meanwhile; given, the peak of memory is measured too. */
  peakIn?: string
  /** A program that runs until it is told to stop: it is, as soon as it has written this to standard error. */
  stopAfter?: string
}

const alive = new Set<ChildProcess>()

/** Runs a Node program by itself, of the Node that runs this, and measures it. Throws where it does not end with 0. */
export async function measure(args: readonly string[], options: MeasureOptions = {}): Promise<Measured> {
  const { peakIn, stopAfter } = options
  const peakFile = peakIn === undefined ? undefined : path.join(peakIn, 'peak')
  const before = peakFile === undefined ? [] : ['--import', PEAK_MEMORY]
  const env = { ...CLEAN_ENV, ...(peakFile === undefined ? {} : { PEAK_FILE: peakFile }) }
  const began = performance.now()
  const child = spawn(process.execPath, [...before, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  alive.add(child)
  if (stopAfter !== undefined) stopWhenTold(child, stopAfter)
  const [stdout, stderr, [code]] = await Promise.all([
    beginningOf(child.stdout),
    beginningOf(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  const ms = performance.now() - began
  alive.delete(child)
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stderr}`)
  return { ms, peakKb: peakFile === undefined ? null : Number(fs.readFileSync(peakFile, 'utf8')), stdout }
}

/** Ends what still runs, at once. */
export function killMeasured(): void {
  for (const child of alive) child.kill('SIGKILL')
}

const KEPT_OUTPUT = 65_536

/** Reads all of it, and keeps no more than who looks at it needs: a query may write gigabytes. */
async function beginningOf(output: Readable): Promise<string> {
  let text = ''
  for await (const chunk of output.setEncoding('utf8')) if (text.length < KEPT_OUTPUT) text += String(chunk)
  return text
}

function stopWhenTold(child: ChildProcess, words: string): void {
  let seen = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    if (seen.includes(words)) return
    seen += chunk.toString()
    if (seen.includes(words)) child.kill('SIGTERM')
  })
}
