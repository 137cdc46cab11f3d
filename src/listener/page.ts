import { html, raw } from 'hono/html'
import type { JobStatus } from '../report/status.ts'
import {
  failingNote,
  progressNotes,
  queueText,
  removalsHeldNote,
  tokenHeldNote,
} from '../report/status-text.ts'
import { counted, grouped, inBytes, inWords, jobKey, printable } from '../text.ts'
import type { BudgetUse, Overview } from './overview.ts'
import { SCRIPT, STYLE } from './page-assets.ts'

/** The status page: one document that loads nothing else. Everything from outside goes through `printable` and is escaped. */
export async function pageHtml(overview: Overview): Promise<string> {
  const { verdict } = overview.status
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<noscript><meta http-equiv="refresh" content="15"></noscript>
<title>${capitalized(verdict)} - admin-mirror</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body>
<p id="stale" role="status" hidden></p>
<main>
${pageHeading(overview)}
${stepsSection(overview)}
${listsSection(overview)}
${requestsSection(overview)}
${notesSection(overview)}
${columnsSection(overview)}
${publishedSection(overview)}
${footer(overview)}
</main>
<script>${raw(SCRIPT)}</script>
</body>
</html>
`
  return page.toString()
}

function pageHeading({ status, size }: Overview) {
  const { daemon, now, waiting_until: waiting } = status
  const since = daemon.processes.find(({ running }) => running)?.since
  const facts = [
    `read at ${now.slice(0, 19).replace('T', ' ')} UTC`,
    ...(since === undefined ? [] : [`start runs for ${inWords(Date.parse(now) - Date.parse(since))}`]),
    ...(status.queue ? [`queue: ${queueText(status.queue)}`] : []),
    `mirror ${inBytes(size.bytes)}${size.walBytes === null ? '' : `, WAL ${inBytes(size.walBytes)}`}`,
    ...(size.freeBytes === null ? [] : [`${inBytes(size.freeBytes)} free`]),
  ]
  return html`<header class="verdict ${toneOf(status)}"><h1>${capitalized(status.verdict)}</h1>
<p class="quiet small">${facts.join(' · ')}</p>
${waiting !== null && html`<p class="small">the rate limit asks for a pause until ${waiting}</p>`}
${status.refreshes.map((text) => html`<p class="quiet small">${text}</p>`)}</header>`
}

function toneOf({ check_exit_code: code, jobs }: Overview['status']): Tone {
  if (code !== 0) return 'bad'
  const isOpen = jobs.some(
    (job) => job.configured && (job.next !== null || job.as_of === null || job.untrusted !== null),
  )
  return isOpen ? 'warn' : 'good'
}

/** How many budgets are shown unfolded. */
const BUDGETS_UNFOLDED = 5

function requestsSection({ budgets, started_at: started, status }: Overview) {
  const hourAgo = Date.parse(status.now) - 3_600_000
  const since = Date.parse(started) > hourAgo ? 'since its start' : 'in the last hour'
  const busy = budgets.filter(({ requests }) => requests > 0)
  const rows = busy.toSorted((a, b) => partOf(b) - partOf(a) || b.requests - a.requests).map(budgetItem)
  const sum = busy.reduce((total, { requests }) => total + requests, 0)
  return html`<h2>Requests</h2><p class="quiet small">${counted(sum, 'request')} of this process ${since}${sum > 0 && ', beside what the rate limit lets through in an hour'}</p>
<ul>${rows.slice(0, BUDGETS_UNFOLDED)}</ul>${foldedItems('more-budgets', rows.slice(BUDGETS_UNFOLDED), 'more budget')}`
}

function partOf({ requests, per_minute: limit }: BudgetUse): number {
  return limit === null ? 0 : requests / (limit * 60)
}

function budgetItem(budget: BudgetUse) {
  const { organizations, requests, throttled, per_minute: limit } = budget
  const names = organizations.slice(0, 3).map((name) => printable(name, 60))
  const more = organizations.length > 3 ? ` and ${grouped(organizations.length - 3)} more` : ''
  const of = limit === null ? ', no limit is known' : ` of ${grouped(Math.floor(limit * 60))}`
  const warning = throttled > 0 && html` <span class="warn">${grouped(throttled)} answered with 429</span>`
  const used =
    limit !== null && bar(partOf(budget), `${Math.round(partOf(budget) * 100)} % of an hour's requests`)
  return html`<li class="row"><bdi class="name">${names.join(', ')}${more}</bdi><span>${grouped(requests)}${of}${warning || ''}</span>${used || ''}</li>`
}

function notesSection({ status }: Overview) {
  if (status.notes.length === 0) return ''
  const items = status.notes.map((note) => html`<li><bdi>${printable(note, 1000)}</bdi></li>`)
  return html`<h2>Notes</h2><ul>${items}</ul>`
}

function columnsSection({ new_columns: columns }: Overview) {
  if (columns.length === 0) return ''
  const items = columns.map(
    ({ collection, column, type, path, first_seen_at: at }) =>
      html`<li><bdi class="name">${printable(collection, 60)}</bdi> <code><bdi>${printable(column, 100)}</bdi></code> <span class="quiet">${type}, from <bdi>${printable(path, 200)}</bdi>, since ${at}</span></li>`,
  )
  return html`<h2>New columns</h2><details id="columns"><summary>${counted(columns.length, 'new column')} in the last seven days</summary><ul>${items}</ul></details>`
}

function publishedSection({ published, status }: Overview) {
  if (published === null) return ''
  const { file, created_at: at, bytes } = published
  const ago = (time: string) => inWords(Date.parse(status.now) - Date.parse(time))
  const age = at === null ? 'not there yet' : `made ${ago(at)} ago, ${at}`
  return html`<h2>Published file</h2><p><bdi>${printable(file, 500)}</bdi> <span class="quiet">${age}${bytes !== null && `, ${inBytes(bytes)}`}</span></p>`
}

function footer({ version, status }: Overview) {
  return html`<footer class="quiet small"><a href="metrics">metrics</a><a href="status.json">status.json</a><a href="check">check</a><a href="healthz">healthz</a><a href="readyz">readyz</a>admin-mirror ${version}, <bdi>${printable(status.database, 500)}</bdi></footer>`
}

function capitalized(text: string): string {
  const shown = printable(text, 1000)
  return shown.charAt(0).toUpperCase() + shown.slice(1)
}

const MARKS = 30
const WIDTH = 5
const HEIGHT = 16

/** By the letters of `RunsShown`. */
const TONES: Readonly<Record<string, Tone>> = { s: 'good', h: 'warn', f: 'bad', i: 'warn', r: 'busy' }
const MARK_WORDS: Readonly<Record<string, string>> = {
  s: 'succeeded',
  h: 'with removals held back',
  f: 'failed',
  i: 'interrupted',
  r: 'running',
}

/** The last runs, the latest at the right. One path a colour: a thousand lists have thirty thousand runs. */
function strip(marks: string) {
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
  const said = marksText(marks)
  return html`<svg class="strip" viewBox="0 0 ${MARKS * WIDTH} ${HEIGHT}" role="img" aria-label="${said}"><title>${said}</title>${none}${paths}</svg>`
}

function marksText(marks: string): string {
  if (marks === '') return 'no run yet'
  const counts = Object.entries(MARK_WORDS).flatMap(([mark, word]) => {
    const count = marks.toLowerCase().split(mark).length - 1
    return count === 0 ? [] : [`${count} ${word}`]
  })
  return `${marks.length === 1 ? 'the only run' : `last ${marks.length} runs`}: ${counts.join(', ')}`
}

/** The heights of runs, for those who cannot tell the colours apart: a failed run is the highest, and a refresh is lower than a walk. */
function markPath({ mark, left }: { mark: string; left: number }): string {
  const isRefresh = mark !== mark.toLowerCase()
  const height = mark.toLowerCase() === 'f' ? HEIGHT : isRefresh ? 6 : 11
  return `M${left} ${HEIGHT - height}h${WIDTH - 1}v${height}h-${WIDTH - 1}z`
}

/** `part` of a bar, from 0 to 1. */
function bar(part: number, said: string) {
  const width = Math.round(Math.min(Math.max(part, 0), 1) * 1000)
  return html`<svg class="bar" viewBox="0 0 1000 7" preserveAspectRatio="none" role="img" aria-label="${said}"><rect width="${width}" height="7"/></svg>`
}

/** How many steps are shown unfolded. */
const STEPS_UNFOLDED = 8

/** What somebody has to do, with the command to type; nothing if there is nothing to do. */
function stepsSection({ status }: Overview) {
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
  return html`<h2>What needs somebody</h2><ul>${items.slice(0, STEPS_UNFOLDED)}</ul>${foldedItems('more-steps', items.slice(STEPS_UNFOLDED), 'more step')}`
}

function stepItem(next: string, jobs: readonly JobStatus[], now: number) {
  const [first] = jobs
  const reason = first && pageState(first, now).reason
  const { advice, command } = splitStep(next)
  return html`<li><p><span class="name">${listNames(jobs)}</span>${reason && html` <span class="quiet">${reason}</span>`}</p>
${advice && html`<p>${printable(advice, 1000)}</p>`}
${command && html`<code class="command">${printable(command, 1000)}</code>`}</li>`
}

const MOST_NAMED = 4

function listNames(jobs: readonly JobStatus[]) {
  const names = jobs
    .slice(0, MOST_NAMED)
    .map((job) => `${printable(job.organization, 60)} ${printable(job.collection, 60)}`)
  const more = jobs.length > MOST_NAMED ? ` and ${counted(jobs.length - MOST_NAMED, 'more list')}` : ''
  return html`${names.map((name, index) => html`${index > 0 ? ', ' : ''}<bdi>${name}</bdi>`)}${more}`
}

/** The command that a step ends with, apart from the advice before it. */
function splitStep(next: string): { advice: string; command: string } {
  const [, advice = '', command = ''] = /^(?:(.*?): )?(admin-mirror .*)/.exec(next) ?? []
  return command === '' ? { advice: next, command } : { advice, command }
}

/** How many lists are shown unfolded; of lists that are not well, ten times as many. */
const LISTS_UNFOLDED = 30

type RankedList = ReturnType<typeof worstFirst>[number]

/** All lists, the worst first. */
function listsSection({ status, runs }: Overview) {
  const now = Date.parse(status.now)
  const all = worstFirst(status.jobs, now)
  const notWell = all.filter(({ state }) => state.tone !== 'good' && state.tone !== 'quiet').length
  const unfolded = Math.min(Math.max(LISTS_UNFOLDED, notWell), 10 * LISTS_UNFOLDED)
  const rest = all.slice(unfolded)
  const folded =
    rest.length > 0 &&
    html`<details id="more-lists"><summary>${grouped(rest.length)} more lists${restText(rest)}</summary>${table(rest, runs, now)}</details>`
  return html`<h2>Lists</h2>${table(all.slice(0, unfolded), runs, now)}${folded || ''}`
}

function restText(rest: readonly RankedList[]): string {
  const well = rest.filter(({ state }) => state.tone === 'good' || state.tone === 'quiet').length
  return well === rest.length ? ', all well' : ''
}

function table(listed: readonly RankedList[], runs: Overview['runs'], now: number) {
  return html`<table>
<thead><tr><th scope="col">list</th><th scope="col">state</th><th scope="col">as of</th><th scope="col">next</th><th scope="col">coverage</th><th scope="col" class="number">rows</th><th scope="col">last runs</th></tr></thead>
<tbody>${listed.map((one) => listRows(one, runs.get(jobKey(one.job.organization_id, one.job.collection))?.marks ?? '', now))}</tbody>
</table>`
}

function listRows({ job, state }: RankedList, marks: string, now: number) {
  const more = detailsRow(job, state, now)
  return html`<tr${more ? html` class="has-more"` : ''}>
<td class="name"><bdi>${printable(job.organization, 60)}</bdi> <bdi>${printable(job.collection, 60)}</bdi></td>
<td class="state ${state.tone}">${state.word}</td>
<td class="age" data-label="as of">${asOf(job)}</td>
<td class="age" data-label="next">${nextRunCell(job, now)}</td>
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

/** When a list is read next; not while its token is held, since nothing is sent then. */
function nextRunCell({ next_run_at: next, schedule, held_since: held }: JobStatus, now: number) {
  if (next === null || held !== null) return html`<span class="quiet">-</span>`
  return html`<span title="${next}, by the schedule ${schedule ?? ''}">in ${inWords(Date.parse(next) - now)}</span>`
}

function coverage({ coverage: known }: JobStatus) {
  return known === null ? html`<span class="quiet">-</span>` : html`${known}`
}

/** A second row: why the list is not well, how far its walk is, and what that waits for. */
function detailsRow(job: JobStatus, { reason, tone }: State, now: number) {
  const notes = progressNotes(job, now)
  if (reason === null && notes.length === 0 && job.waiting_until === null) return ''
  const percent = job.running ? job.walk_percent : null
  return html`<tr class="more"><td colspan="7" class="wide small">
${reason !== null && html`<p class="${tone}">${reason}</p>`}
${percent !== null && bar(percent / 100, `${percent} %`)}
${notes.map((note) => html`<p class="quiet">${printable(note, 500)}</p>`)}
${waitLine(job, now)}
</td></tr>`
}

function waitLine({ waiting_until: until, waiting_for: reason }: JobStatus, now: number) {
  if (until === null) return ''
  return html`<p title="${until}">waits ${inWords(Date.parse(until) - now)}: ${printable(reason ?? 'the rate limit')}</p>`
}

type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'quiet'

interface State {
  /** The worst is 0. */
  rank: number
  word: string
  tone: Tone
  /** What happened; null if nothing needs an explanation. */
  reason: string | null
}

function stateNamed(rank: number, word: string, tone: Tone, reason: string | null = null): State {
  return { rank, word, tone, reason }
}

/** How a list is, in a word or two. */
export function pageState(job: JobStatus, now: number): State {
  if (!job.configured) return stateNamed(9, 'not configured', 'quiet')
  if (job.held_since !== null) return stateNamed(0, 'held', 'bad', tokenHeldNote(job))
  if (job.removals_held > 0) return stateNamed(1, 'removals held', 'bad', removalsHeldNote(job))
  if (job.failing_since !== null)
    return stateNamed(2, job.running ? 'failing, tried again' : 'failed', 'bad', failingNote(job, now))
  if (job.overdue === true) return stateNamed(3, 'overdue', 'bad', overdueReason(job, now))
  if (job.running) return stateNamed(job.as_of === null ? 7 : 8, workWord(job), 'busy')
  if (job.next !== null)
    return stateNamed(4, job.as_of === null ? 'not read yet' : 'unfinished', 'warn', job.untrusted)
  if (job.as_of === null) return stateNamed(5, 'not read yet', 'warn')
  if (job.untrusted !== null)
    return stateNamed(6, 'uncertain', 'warn', `nothing is removed: ${printable(job.untrusted, 500)}`)
  return stateNamed(8, 'well', 'good')
}

function workWord({ work, retry_since: failsSince }: JobStatus): string {
  if (failsSince !== null) return 'asking again'
  return work === 'verify' ? 'being compared' : 'being read'
}

function overdueReason({ due_at: due }: JobStatus, now: number): string {
  return due === null ? 'never tried' : `due ${inWords(now - Date.parse(due))} ago, and nothing reads it`
}

/** The worst first, then what was read longest ago. */
function worstFirst(jobs: readonly JobStatus[], now: number): { job: JobStatus; state: State }[] {
  return jobs
    .map((job) => ({ job, state: pageState(job, now) }))
    .toSorted((a, b) => a.state.rank - b.state.rank || (a.job.as_of ?? '').localeCompare(b.job.as_of ?? ''))
}

/** The items of a list that are folded; nothing if there are none. By `id` they stay unfolded in the next reading. */
function foldedItems(id: string, items: readonly unknown[], noun: string) {
  if (items.length === 0) return ''
  return html`<details id="${id}"><summary>${counted(items.length, noun)}</summary><ul>${items}</ul></details>`
}
