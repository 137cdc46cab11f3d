import { Writable } from 'node:stream'
import type { Output } from '../runtime.ts'

/** Standard error on a terminal: log lines, and below them progress lines that are drawn again and again. */
export interface Terminal {
  /** Takes log lines and writes them above the drawn ones. */
  log: Writable
  /** Whether this is a terminal. */
  isWatched: boolean
  /** Replaces the drawn lines by these. Does nothing without a terminal. */
  draw(lines: readonly string[]): void
  /** Lines of the screen. */
  height(): number
}

export function createTerminal(output: Output): Terminal {
  let drawn: readonly string[] = []

  function clear(): void {
    // Moves up to the first drawn line and erases everything below.
    if (drawn.length > 0) output.write(`\u001b[${drawn.length}A\u001b[0J`)
  }

  function show(): void {
    for (const line of drawn) output.write(`${line}\n`)
  }

  const log = new Writable({
    write(chunk, _encoding, done) {
      clear()
      output.write(chunk)
      show()
      done()
    },
  })

  return {
    log,
    isWatched: output.isTTY === true,
    height: () => output.rows || 24,
    draw(lines) {
      if (!output.isTTY) return
      clear()
      // Only one row of a wrapped line would be erased. A terminal that does not know its width reports 0.
      const width = (output.columns || 80) - 1
      drawn = lines.map((line) => line.slice(0, width))
      show()
    },
  }
}
