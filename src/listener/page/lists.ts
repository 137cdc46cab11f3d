import { html } from 'hono/html'
import type { JobStatus } from '../../report/job-status.ts'
import { missedText, progressNotes } from '../../report/progress.ts'
import { grouped, inWords, printable } from '../../text.ts'
import { jobKey, type Overview } from '../overview.ts'
import { type State, worstFirst } from './state.ts'
import { bar, strip } from './strip.ts'

/** Lists that stand unfolded; those that are not well do anyway, up to ten times as many. */
const UNFOLDED = 30

type Listed = ReturnType<typeof worstFirst>[number]

/** All lists, the worst first. */
export function listsSection({ status, runs }: Overview) {
  const now = Date.parse(status.now)
  const all = worstFirst(status.jobs, now)
  const notWell = all.filter(({ state }) => state.tone !== 'good' && state.tone !== 'quiet').length
  const unfolded = Math.min(Math.max(UNFOLDED, notWell), 10 * UNFOLDED)
  const rest = all.slice(unfolded)
  const folded =
    rest.length > 0 &&
    html`<details id="more-lists"><summary>${grouped(rest.length)} more lists${restText(rest)}</summary>${table(rest, runs, now)}</details>`
  return html`<h2>Lists</h2>${table(all.slice(0, unfolded), runs, now)}${folded || ''}`
}

function restText(rest: readonly Listed[]): string {
  const well = rest.filter(({ state }) => state.tone === 'good' || state.tone === 'quiet').length
  return well === rest.length ? ', all well' : ''
}

function table(listed: readonly Listed[], runs: Overview['runs'], now: number) {
  return html`<table>
<thead><tr><th scope="col">list</th><th scope="col">state</th><th scope="col">as of</th><th scope="col">next</th><th scope="col">coverage</th><th scope="col" class="number">rows</th><th scope="col">last runs</th></tr></thead>
<tbody>${listed.map((one) => rowsOf(one, runs.get(jobKey(one.job))?.marks ?? '', now))}</tbody>
</table>`
}

function rowsOf({ job, state }: Listed, marks: string, now: number) {
  const more = details(job, state, now)
  return html`<tr${more ? html` class="has-more"` : ''}>
<td class="name"><bdi>${printable(job.organization, 60)}</bdi> <bdi>${printable(job.collection, 60)}</bdi></td>
<td class="state ${state.tone}">${state.word}</td>
<td class="age" data-label="as of">${asOf(job)}</td>
<td class="age" data-label="next">${nextRun(job, now)}</td>
<td data-label="coverage">${coverage(job)}</td>
<td class="number" data-label="rows">${grouped(job.rows)}</td>
<td class="wide">${strip(marks)}</td>
</tr>${more}`
}

function asOf({ as_of: time, age_ms: age, fresh_as_of: fresh }: JobStatus) {
  if (time === null || age === null) return html`<span class="quiet">never</span>`
  const known = fresh === null || fresh === time ? time : `${time}, what is new as of ${fresh}`
  return html`<span title="${known}">${inWords(age)} ago</span>`
}

/** Nothing is sent with a held token. */
function nextRun({ next_run_at: next, schedule, held_since: held }: JobStatus, now: number) {
  if (next === null || held !== null) return html`<span class="quiet">-</span>`
  return html`<span title="${next}, by the schedule ${schedule ?? ''}">in ${inWords(Date.parse(next) - now)}</span>`
}

function coverage({ coverage: known, expected_missed: missed }: JobStatus) {
  return known === null ? html`<span class="quiet">-</span>` : html`${known}${missedText(missed)}`
}

/** A second row: why the list is not well, how far its walk is, and what that waits for. */
function details(job: JobStatus, { reason, tone }: State, now: number) {
  const notes = progressNotes(job, now)
  if (reason === null && notes.length === 0 && job.waiting_until === null) return ''
  const percent = job.running ? job.walk_percent : null
  return html`<tr class="more"><td colspan="7" class="wide small">
${reason !== null && html`<p class="${tone}">${reason}</p>`}
${percent !== null && bar(percent / 100, `${percent} %`)}
${notes.map((note) => html`<p class="quiet">${printable(note, 500)}</p>`)}
${waiting(job, now)}
</td></tr>`
}

function waiting({ waiting_until: until, waiting_for: reason }: JobStatus, now: number) {
  if (until === null) return ''
  return html`<p title="${until}">waits ${inWords(Date.parse(until) - now)}: ${printable(reason ?? 'the rate limit')}</p>`
}
