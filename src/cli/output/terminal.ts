import { Writable } from 'node:stream'
import type { Output } from '../runtime.ts'
import { cellsOf, cut } from './progress/fit.ts'

/** Standard error on a terminal: log lines, and below them progress lines that are drawn again and again. */
export interface Terminal {
  /** Takes log lines and writes them above the drawn ones. */
  log: Writable
  /** Whether this is a terminal. */
  isWatched: boolean
  /** Whether lines can be drawn again: not on a terminal that knows no escapes (`TERM=dumb`). */
  canDraw: boolean
  /** Replaces the drawn lines by these. Does nothing where it cannot draw. */
  draw(lines: readonly string[]): void
  /** Cells of a line, and lines of the screen. */
  width(): number
  height(): number
}

/** @param term The value of `TERM`. */
export function createTerminal(output: Output, term: string | undefined): Terminal {
  const isWatched = output.isTTY === true
  const canDraw = isWatched && term !== 'dumb'
  let drawn: readonly string[] = []
  let drawnWidth = 0

  // A terminal that does not know its width reports 0.
  const columns = () => output.columns || 80
  // A full line would wrap.
  const width = () => columns() - 1

  function clear(): void {
    // A window that became narrower has wrapped what was drawn.
    const rows = drawn.reduce((sum, line) => sum + Math.max(Math.ceil(cellsOf(line) / columns()), 1), 0)
    // Erases from the last drawn line up to the first, then whatever is below. If the first is at the top of the
    // screen, tmux would keep in its history what the second erases.
    if (rows > 0) output.write(`${'\u001b[1A\u001b[2K'.repeat(rows)}\u001b[0J`)
  }

  function show(): void {
    for (const line of drawn) output.write(`${line}\n`)
  }

  const log = new Writable({
    write(chunk, _encoding, done) {
      clear()
      output.write(chunk)
      drawn = drawn.map((line) => cut(line, width()))
      show()
      done()
    },
  })

  return {
    log,
    isWatched,
    canDraw,
    width,
    height: () => output.rows || 24,
    draw(lines) {
      if (!canDraw) return
      const next = lines.map((line) => cut(line, width()))
      // What stands there already need not flicker.
      if (width() === drawnWidth && next.join('\n') === drawn.join('\n')) return
      clear()
      drawn = next
      drawnWidth = width()
      show()
    },
  }
}
