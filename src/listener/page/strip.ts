import { html } from 'hono/html'
import type { RunMark } from '../../store/sqlite/read/overview.ts'
import type { Tone } from './state.ts'

const MARKS = 30
const WIDTH = 5
const HEIGHT = 16

/** How a run ended. A refresh is drawn lower than a walk. */
function toneOf({ status, error_code: code }: RunMark): Tone {
  if (status === 'failed') return 'bad'
  if (status === 'running') return 'busy'
  return status === 'interrupted' || code !== null ? 'warn' : 'good'
}

const WORDS: Partial<Record<Tone, string>> = {
  good: 'succeeded',
  warn: 'interrupted or with removals held back',
  bad: 'failed',
  busy: 'running',
}

/** The last runs, the latest at the right. One path a colour: a thousand lists have thirty thousand runs. */
export function strip(runs: readonly RunMark[]) {
  const byTone = Map.groupBy(
    runs.map((run, index) => ({ run, left: (MARKS - runs.length + index) * WIDTH })),
    ({ run }) => toneOf(run),
  )
  const counts = Object.keys(WORDS).flatMap((tone) => {
    const count = byTone.get(tone as Tone)?.length ?? 0
    return count === 0 ? [] : [`${count} ${WORDS[tone as Tone]}`]
  })
  const said = runs.length === 0 ? 'no run yet' : `last ${runs.length} runs: ${counts.join(', ')}`
  const paths = [...byTone].map(
    ([tone, marks]) =>
      html`<path class="${tone}" d="${marks.map(({ run, left }) => markPath(left, run.trigger === 'refresh')).join('')}"/>`,
  )
  const missing = (MARKS - runs.length) * WIDTH
  const none =
    missing > 0 ? html`<path class="none" d="M0 ${HEIGHT - 1}h${missing - 1}v1h-${missing - 1}z"/>` : ''
  return html`<svg class="strip" viewBox="0 0 ${MARKS * WIDTH} ${HEIGHT}" role="img" aria-label="${said}"><title>${said}</title>${none}${paths}</svg>`
}

function markPath(left: number, isLow: boolean): string {
  const height = isLow ? HEIGHT / 2 : HEIGHT
  return `M${left} ${HEIGHT - height}h${WIDTH - 1}v${height}h-${WIDTH - 1}z`
}

/** `part` of a bar, from 0 to 1. */
export function bar(part: number, said: string) {
  const width = Math.round(Math.min(Math.max(part, 0), 1) * 1000)
  return html`<svg class="bar" viewBox="0 0 1000 7" preserveAspectRatio="none" role="img" aria-label="${said}"><rect width="${width}" height="7"/></svg>`
}
