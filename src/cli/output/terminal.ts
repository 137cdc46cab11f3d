import { Writable } from 'node:stream'
import type { Output } from '../runtime.ts'

export type Terminal = ReturnType<typeof createTerminal>

/**
 * Standard error on a terminal: log lines, and below them progress lines that are drawn again and again.
 * @param term The value of `TERM`.
 */
export function createTerminal(output: Output, term: string | undefined) {
  /** Whether this is a terminal. */
  const isWatched = output.isTTY === true
  /** Whether lines can be drawn again: not on a terminal that knows no escapes (`TERM=dumb`). */
  const canDraw = isWatched && term !== 'dumb'
  let drawn: readonly string[] = []
  let drawnWidth = 0

  // A terminal that does not know its width reports 0.
  const columns = () => output.columns || 80
  /** Cells of a line: a full one would wrap. */
  const width = () => columns() - 1

  function clear(): void {
    // A window that became narrower has wrapped the drawn lines.
    const rows = drawn.reduce((sum, line) => sum + Math.max(Math.ceil(cellsOf(line) / columns()), 1), 0)
    // Erases from the last drawn line up to the first, then whatever is below. If the first is at the top of the
    // screen, tmux would keep in its history what the second erases.
    if (rows > 0) output.write(`${'\u001b[1A\u001b[2K'.repeat(rows)}\u001b[0J`)
  }

  function show(): void {
    for (const line of drawn) output.write(`${line}\n`)
  }

  /** Takes log lines and writes them above the drawn ones. */
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
    /** Replaces the drawn lines by these. Does nothing on a terminal that cannot draw. */
    draw(lines: readonly string[]): void {
      if (!canDraw) return
      const next = lines.map((line) => cut(line, width()))
      // Lines that are already there are not drawn again: they would flicker.
      if (width() === drawnWidth && next.join('\n') === drawn.join('\n')) return
      clear()
      drawn = next
      drawnWidth = width()
      show()
    },
  }
}

const ZERO_WIDE = /^[\p{M}\p{Cf}]$/u
const TWO_WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u

/** Cells of a terminal that a text takes. */
export function cellsOf(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + cells(character), 0)
}

function cells(character: string): number {
  if (ZERO_WIDE.test(character)) return 0
  return TWO_WIDE.test(character) ? 2 : 1
}

/** The text in at most this many cells, with a sign if it is cut. */
export function cut(text: string, most: number): string {
  if (cellsOf(text) <= most) return text
  let used = 0
  let kept = ''
  for (const character of text) {
    used += cells(character)
    if (used > most - 1) break
    kept += character
  }
  return most < 1 ? '' : `${kept}…`
}

const SHORTEST_LABEL = 12

/**
 * A label and as many of its parts as fit whole, the most important ones first: a number without its unit would mislead. A label that leaves
 * no room for the first part is cut.
 */
export function fitted(label: string, parts: readonly string[], width: number): string {
  const [first = '', ...others] = parts.filter((part) => part !== '')
  const room = Math.max(width - cellsOf(first) - 2, Math.min(SHORTEST_LABEL, width))
  let line = cut(label, room)
  for (const part of [first, ...others]) {
    const longer = part === '' ? line : `${line}  ${part}`
    if (cellsOf(longer) > width) return part === first ? cut(longer, width) : line
    line = longer
  }
  return line
}

/** The text with spaces up to this many cells. */
export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(width - cellsOf(text), 0))
}
