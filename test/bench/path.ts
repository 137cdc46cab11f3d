import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createMirror } from './mirrors.ts'
import { whileServing } from './processes.ts'

// Which files a page goes through: those with a function that V8 counts at least once for each page more.

const PROGRAM = fileURLToPath(new URL('../../src/bin.js', import.meta.url))
const SOURCE = new URL('../../src/', import.meta.url).href
const PAGE_SIZE = 25
const SHORT = 80
const MORE = 160

export interface Paths {
  /** Files of `src` that each new page goes through. */
  first: string[]
  /** The same for a page without changes. */
  unchanged: string[]
}

/** Calls by file and function. */
type Calls = Map<string, number>

interface Coverage {
  result: {
    url: string
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[]
  }[]
}

/** Syncs a short and a longer list, each twice. The difference leaves out what runs at the start. */
export async function measurePaths(folder: string): Promise<Paths> {
  const short = await callsOf(SHORT, folder)
  const long = await callsOf(SHORT + MORE, folder)
  return { first: filesBetween(short.first, long.first), unchanged: filesBetween(short.again, long.again) }
}

function callsOf(pages: number, parent: string): Promise<{ first: Calls; again: Calls }> {
  const orders = pages * PAGE_SIZE
  return whileServing({ orders, latencyMs: 0 }, async ({ url }) => {
    const folder = fs.mkdtempSync(path.join(parent, 'path-'))
    const sync = async (name: string) => {
      const coverage = path.join(folder, name)
      const mirror = createMirror({ url, program: PROGRAM, folder, env: { NODE_V8_COVERAGE: coverage } })
      await mirror.sync(orders)
      return readCalls(coverage)
    }
    return { first: await sync('first'), again: await sync('again') }
  })
}

function readCalls(folder: string): Calls {
  const calls: Calls = new Map()
  for (const name of fs.readdirSync(folder)) {
    const { result } = JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8')) as Coverage
    for (const { url, functions } of result) {
      if (!url.startsWith(SOURCE)) continue
      for (const { functionName, ranges } of functions) {
        const [{ startOffset, count } = { startOffset: 0, count: 0 }] = ranges
        const called = `${url.slice(SOURCE.length)}:${functionName}:${startOffset}`
        calls.set(called, (calls.get(called) ?? 0) + count)
      }
    }
  }
  return calls
}

function filesBetween(short: Calls, long: Calls): string[] {
  const perPage = [...long].filter(([called, count]) => count - (short.get(called) ?? 0) >= MORE)
  return [...new Set(perPage.map(([called]) => called.slice(0, called.indexOf(':'))))].toSorted()
}

if (import.meta.main) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-path-'))
  try {
    const { first, unchanged } = await measurePaths(folder)
    for (const file of [...new Set([...first, ...unchanged])].toSorted())
      console.log(
        `${first.includes(file) ? 'new' : '   '}  ${unchanged.includes(file) ? 'unchanged' : '         '}  ${file}`,
      )
    console.log(`${first.length} files for a new page, ${unchanged.length} for an unchanged one`)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
