import { html, raw } from 'hono/html'
import { queueText } from '../../report/status-text.ts'
import { counted, grouped, inWords, printable } from '../../text.ts'
import type { BudgetUse, Overview } from '../overview.ts'
import { foldedItems } from './folded.ts'
import { listsSection } from './lists.ts'
import { SCRIPT } from './script.ts'
import type { Tone } from './state.ts'
import { stepsSection } from './steps.ts'
import { bar } from './strip.ts'
import { STYLE } from './style.ts'

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
<title>${sentence(verdict)} - admin-mirror</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body>
<p id="stale" role="status" hidden></p>
<main>
${heading(overview)}
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

function heading({ status, size }: Overview) {
  const { daemon, now, waiting_until: waiting } = status
  const since = daemon.processes.find(({ running }) => running)?.since
  const facts = [
    `read at ${now.slice(0, 19).replace('T', ' ')} UTC`,
    ...(since === undefined ? [] : [`start runs for ${inWords(Date.parse(now) - Date.parse(since))}`]),
    ...(status.queue ? [`queue: ${queueText(status.queue)}`] : []),
    `mirror ${inBytes(size.bytes)}${size.walBytes === null ? '' : `, WAL ${inBytes(size.walBytes)}`}`,
    ...(size.freeBytes === null ? [] : [`${inBytes(size.freeBytes)} free`]),
  ]
  return html`<header class="verdict ${toneOf(status)}"><h1>${sentence(status.verdict)}</h1>
<p class="quiet small">${facts.join(' · ')}</p>
${waiting !== null && html`<p class="small">the rate limit asks for a pause until ${waiting}</p>`}</header>`
}

function toneOf({ check_exit_code: code, jobs }: Overview['status']): Tone {
  if (code !== 0) return 'bad'
  const isOpen = jobs.some(
    (job) => job.configured && (job.next !== null || job.as_of === null || job.untrusted !== null),
  )
  return isOpen ? 'warn' : 'good'
}

/** Budgets that stand unfolded. */
const UNFOLDED = 5

function requestsSection({ budgets, started_at: started, status }: Overview) {
  const hourAgo = Date.parse(status.now) - 3_600_000
  const since = Date.parse(started) > hourAgo ? 'since its start' : 'in the last hour'
  const busy = budgets.filter(({ requests }) => requests > 0)
  const rows = busy.toSorted((a, b) => partOf(b) - partOf(a) || b.requests - a.requests).map(budgetItem)
  const sum = busy.reduce((total, { requests }) => total + requests, 0)
  return html`<h2>Requests</h2><p class="quiet small">${counted(sum, 'request')} of this process ${since}${sum > 0 && ', beside what the rate limit lets through in an hour'}</p>
<ul>${rows.slice(0, UNFOLDED)}</ul>${foldedItems('more-budgets', rows.slice(UNFOLDED), 'more budget')}`
}

function partOf({ requests, per_minute: limit }: BudgetUse): number {
  return limit === null ? 0 : requests / (limit * 60)
}

function budgetItem(budget: BudgetUse) {
  const { organizations, requests, refused, per_minute: limit } = budget
  const names = organizations.slice(0, 3).map((name) => printable(name, 60))
  const more = organizations.length > 3 ? ` and ${grouped(organizations.length - 3)} more` : ''
  const of = limit === null ? ', no limit is known' : ` of ${grouped(Math.floor(limit * 60))}`
  const throttled = refused > 0 && html` <span class="warn">${grouped(refused)} answered with 429</span>`
  const used =
    limit !== null && bar(partOf(budget), `${Math.round(partOf(budget) * 100)} % of an hour's requests`)
  return html`<li class="row"><bdi class="name">${names.join(', ')}${more}</bdi><span>${grouped(requests)}${of}${throttled || ''}</span>${used || ''}</li>`
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
  const { file, created_at: at, current_at: current, bytes } = published
  const ago = (time: string) => inWords(Date.parse(status.now) - Date.parse(time))
  const upToDate = current === null ? '' : `, up to date ${ago(current)} ago`
  const age = at === null ? 'not there yet' : `made ${ago(at)} ago, ${at}${upToDate}`
  return html`<h2>Published file</h2><p><bdi>${printable(file, 500)}</bdi> <span class="quiet">${age}${bytes !== null && `, ${inBytes(bytes)}`}</span></p>`
}

function footer({ version, status }: Overview) {
  return html`<footer class="quiet small"><a href="metrics">metrics</a><a href="status.json">status.json</a><a href="check">check</a><a href="healthz">healthz</a><a href="readyz">readyz</a>admin-mirror ${version}, <bdi>${printable(status.database, 500)}</bdi></footer>`
}

function sentence(text: string): string {
  const shown = printable(text, 1000)
  return shown.charAt(0).toUpperCase() + shown.slice(1)
}

/** `512 bytes`, `3.4 MB`. */
function inBytes(bytes: number): string {
  const units: [number, string][] = [
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
  ]
  const [size, unit] = units.find(([least]) => bytes >= least) ?? [1, 'bytes']
  const value = bytes / size
  return `${value >= 100 || size === 1 ? Math.round(value) : value.toFixed(1)} ${unit}`
}
