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

/** The text in at most so many cells, with a sign where it is cut. */
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
 * A label and as many of its parts, the important ones first, as fit whole: a number without its unit misleads. A label that leaves
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

/** Pads to so many cells. */
export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(width - cellsOf(text), 0))
}
