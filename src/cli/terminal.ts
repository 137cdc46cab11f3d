import { Writable } from 'node:stream'
import type { Output } from './runtime.ts'

/** Standard error as a person watches it: log lines above, and below them lines that are drawn over and over. */
export interface Terminal {
  /** Where log lines go, so that they never land in the middle of the drawn ones. */
  log: Writable
  /** Whether there is anything to draw on. */
  isWatched: boolean
  /** Draws these lines in place of the last ones; does nothing where no terminal is. */
  draw(lines: readonly string[]): void
  /** Lines of the screen. */
  height(): number
}

export function createTerminal(output: Output): Terminal {
  let drawn: readonly string[] = []

  function clear(): void {
    // Up to the first drawn line, and everything below it erased.
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
      // A line that wraps would count as one and be erased as half. Terminals that do not know their width say 0.
      const width = (output.columns || 80) - 1
      drawn = lines.map((line) => line.slice(0, width))
      show()
    },
  }
}
