import { Writable } from 'node:stream'
import { createLogUpdate } from 'log-update'
import type { Output } from '../runtime.ts'

export type Terminal = ReturnType<typeof createTerminal>

/**
 * Standard error on a terminal: log lines, and below them progress lines that are drawn again and again.
 * @param term The value of `TERM`.
 */
export function createTerminal(output: Output, term: string | undefined) {
  /** Whether this is a terminal. */
  const isWatched = output.isTTY === true
  const canDraw = isWatched && term !== 'dumb'
  // A terminal that does not know its size reports 0.
  const size = {
    write: (text: string) => output.write(text),
    isTTY: isWatched,
    get columns() {
      return output.columns || 80
    },
    get rows() {
      return output.rows || 24
    },
  }
  // A hidden cursor would stay hidden where the process is killed.
  const update = createLogUpdate(size as NodeJS.WriteStream, { showCursor: true })
  let drawn = ''

  const log = new Writable({
    write(chunk, _encoding, done) {
      update.clear()
      output.write(chunk)
      if (drawn !== '') update(drawn)
      done()
    },
  })

  return {
    isWatched,
    /** Where log lines go: above the drawn ones. */
    log: canDraw ? log : output,
    /** Replaces the drawn lines by these, as many as fit on half of the screen. Does nothing where nothing can be drawn. */
    draw(lines: readonly string[]): void {
      if (!canDraw) return
      const fitting = lines.slice(0, Math.max(Math.floor(size.rows / 2), 1))
      drawn = fitting.map((line) => line.slice(0, size.columns - 1)).join('\n')
      if (drawn === '') update.clear()
      else update(drawn)
    },
    close(): void {
      drawn = ''
      if (canDraw) update.clear()
    },
  }
}
