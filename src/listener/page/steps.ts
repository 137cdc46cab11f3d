import { html } from 'hono/html'
import type { JobStatus } from '../../report/job-status.ts'
import { counted, printable } from '../../text.ts'
import type { Overview } from '../overview.ts'
import { foldedItems } from './folded.ts'
import { stateOf, worstFirst } from './state.ts'

/** Steps that stand unfolded. */
const UNFOLDED = 8

/** What needs somebody, with the command to type; nothing where nothing does. */
export function stepsSection({ status }: Overview) {
  const now = Date.parse(status.now)
  const worst = worstFirst(status.jobs, now).map(({ job }) => job)
  const byStep = [
    ...Map.groupBy(
      worst.filter(({ next }) => next !== null),
      ({ next }) => next ?? '',
    ),
  ]
  if (byStep.length === 0) return ''
  const items = byStep.map(([next, jobs]) => stepItem(next, jobs, now))
  return html`<h2>What needs somebody</h2><ul>${items.slice(0, UNFOLDED)}</ul>${foldedItems('more-steps', items.slice(UNFOLDED), 'more step')}`
}

function stepItem(next: string, jobs: readonly JobStatus[], now: number) {
  const [first] = jobs
  const reason = first && stateOf(first, now).reason
  const { advice, command } = splitStep(next)
  return html`<li><p><span class="name">${namesOf(jobs)}</span>${reason && html` <span class="quiet">${reason}</span>`}</p>
${advice && html`<p>${printable(advice, 1000)}</p>`}
${command && html`<code class="command">${printable(command, 1000)}</code>`}</li>`
}

const NAMED = 4

function namesOf(jobs: readonly JobStatus[]) {
  const names = jobs
    .slice(0, NAMED)
    .map((job) => `${printable(job.organization, 60)} ${printable(job.collection, 60)}`)
  const more = jobs.length > NAMED ? ` and ${counted(jobs.length - NAMED, 'more list')}` : ''
  return html`${names.map((name, index) => html`${index > 0 ? ', ' : ''}<bdi>${name}</bdi>`)}${more}`
}

/** The command that a step ends with, apart from the advice before it. */
function splitStep(next: string): { advice: string; command: string } {
  const [, advice = '', command = ''] = /^(?:(.*?): )?(admin-mirror .*)$/s.exec(next) ?? []
  return command === '' ? { advice: next, command } : { advice, command }
}
