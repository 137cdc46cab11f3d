import { html } from 'hono/html'
import type { Tone } from './state.ts'

const MARKS = 30
const WIDTH = 5
const HEIGHT = 16

/** By the letters of `LastRuns`. */
const TONES: Readonly<Record<string, Tone>> = { s: 'good', h: 'warn', f: 'bad', i: 'warn', r: 'busy' }
const WORDS: Readonly<Record<string, string>> = {
  s: 'succeeded',
  h: 'with removals held back',
  f: 'failed',
  i: 'interrupted',
  r: 'running',
}

/** The last runs, the latest at the right. One path a colour: a thousand lists have thirty thousand runs. */
export function strip(marks: string) {
  const runs = marks
    .slice(0, MARKS)
    .split('')
    .map((mark, index) => ({ mark, left: (MARKS - 1 - index) * WIDTH }))
  const paths = [...Map.groupBy(runs, ({ mark }) => TONES[mark.toLowerCase()] ?? 'quiet')].map(
    ([tone, ofTone]) => html`<path class="${tone}" d="${ofTone.map(markPath).join('')}"/>`,
  )
  const missing = (MARKS - runs.length) * WIDTH
  const none =
    missing > 0 ? html`<path class="none" d="M0 ${HEIGHT - 1}h${missing - 1}v1h-${missing - 1}z"/>` : ''
  const said = inWordsOf(marks)
  return html`<svg class="strip" viewBox="0 0 ${MARKS * WIDTH} ${HEIGHT}" role="img" aria-label="${said}"><title>${said}</title>${none}${paths}</svg>`
}

function inWordsOf(marks: string): string {
  if (marks === '') return 'no run yet'
  const counts = Object.entries(WORDS).flatMap(([mark, word]) => {
    const count = marks.toLowerCase().split(mark).length - 1
    return count === 0 ? [] : [`${count} ${word}`]
  })
  return `last ${marks.length} runs: ${counts.join(', ')}`
}

/** Colours are not all: a failed run is the highest, and a refresh lower than a walk. */
function markPath({ mark, left }: { mark: string; left: number }): string {
  const isRefresh = mark !== mark.toLowerCase()
  const height = mark.toLowerCase() === 'f' ? HEIGHT : isRefresh ? 6 : 11
  return `M${left} ${HEIGHT - height}h${WIDTH - 1}v${height}h-${WIDTH - 1}z`
}

/** `part` of a bar, from 0 to 1. */
export function bar(part: number, said: string) {
  const width = Math.round(Math.min(Math.max(part, 0), 1) * 1000)
  return html`<svg class="bar" viewBox="0 0 1000 7" preserveAspectRatio="none" role="img" aria-label="${said}"><rect width="${width}" height="7"/></svg>`
}
