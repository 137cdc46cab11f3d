import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import type { NextStep } from '../report/next-step.ts'
import type { JobStatus, Status } from '../report/status.ts'
import { asOfText, daemonText, nextRunText, problemLines } from '../report/status-text.ts'
import { gravestFirst, STATES, type State } from '../report/verdict.ts'
import { counted, printable } from '../text.ts'

const STYLE = `
:root { color-scheme: light dark; --line: #d5d9df; --quiet: #555d68; --good: #1a7a35; --warn: #8a5700; --bad: #b3261e; --busy: #0a5cc2; }
@media (prefers-color-scheme: dark) {
  :root { --line: #343a43; --quiet: #a0a8b3; --good: #5ecb7a; --warn: #e5b450; --bad: #ff8a80; --busy: #7db4ff; }
}
body { margin: 0 auto; max-width: 76rem; padding: 1rem 1.25rem 2rem; font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; padding-left: .8rem; border-left: 6px solid; font-size: 1.3rem; line-height: 1.3; }
h2 { margin: 1.6rem 0 .4rem; font-size: 1rem; }
p, ul { margin: .3rem 0; padding: 0; list-style: none; }
code { display: block; margin: .3rem 0; padding: .4rem .6rem; border: 1px solid var(--line); user-select: all; }
.quiet, th { color: var(--quiet); font-size: .9rem; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); } .busy { color: var(--busy); }
h1 span { color: CanvasText; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400; }
td:first-child { font-weight: 600; }
.number { text-align: right; }
td.number, td[class] { white-space: nowrap; }
@media (max-width: 44rem) {
  thead { position: absolute; clip-path: inset(50%); }
  tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0; }
  td:first-child, td:last-child { flex: 1 1 100%; }
}
`

/** Our own style alone, named by its hash. The page runs and loads nothing, and nothing may frame it. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  // The empty icon, without which a browser asks for /favicon.ico.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The status page: the verdict, what to do, what is wrong, the lists. Everything from outside goes through `printable` and is escaped. */
export async function pageHtml(status: Status): Promise<string> {
  const { verdict, next, notes, now } = status
  const problems = problemLines(status, status.jobs)
  const facts = [
    `read at ${now.slice(0, 19).replace('T', ' ')} UTC`,
    `daemon: ${daemonText(status)}`,
    `admin-mirror ${status.program_version}`,
    printable(status.database, 500),
    ...(status.unpublished === null ? [] : [`published file: ${printable(status.unpublished, 500)}`]),
  ]
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="15">
<title>${capitalized(verdict)} - admin-mirror</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body>
<h1 class="${toneOf(status)}"><span>${capitalized(verdict)}</span></h1>
${next.length > 0 && html`<h2>What to do</h2><ul>${next.map(stepItem)}</ul>`}
${problems.length > 0 && html`<h2>What is wrong</h2><ul>${problems.map(textItem)}</ul>`}
<h2>${counted(status.jobs.length, 'list')}</h2>
${listsTable(status)}
${notes.length > 0 && html`<h2>Notes</h2><ul>${notes.map(textItem)}</ul>`}
<p class="quiet">${facts.join(' · ')}</p>
</body>
</html>
`
  return page.toString()
}

function textItem(text: string) {
  return html`<li><bdi>${printable(text, 1000)}</bdi></li>`
}

/** A step, with its command apart, to be copied. */
function stepItem({ say, command }: NextStep) {
  return html`<li>${say !== null && html`<p><bdi>${printable(say, 1000)}</bdi>${command !== null && ':'}</p>`}${command !== null && html`<code><bdi>${printable(command, 1000)}</bdi></code>`}</li>`
}

function toneOf({ check_exit_code: code, jobs }: Status): Tone {
  if (code !== 0) return 'bad'
  if (jobs.some((job) => job.next !== null || STATES[job.state].tone === 'warn')) return 'warn'
  return jobs.some((job) => job.state === 'being read' && job.as_of === null) ? 'busy' : 'good'
}

type Tone = (typeof STATES)[State]['tone']

/** More rows make a page heavy; the worst are among these. */
const MOST_LISTS = 500

function listsTable(status: Status) {
  const sorted = gravestFirst(status.jobs)
  const hidden = sorted.length - MOST_LISTS
  return html`<table>
<thead><tr><th>list</th><th>state</th><th class="number">rows</th><th>as of</th></tr></thead>
<tbody>${sorted.slice(0, MOST_LISTS).map((job) => listRow(job, status))}</tbody>
</table>${hidden > 0 && html`<p class="quiet">and ${counted(hidden, 'more list')}</p>`}`
}

function listRow(job: JobStatus, { now }: Status) {
  return html`<tr>
<td><bdi>${printable(job.organization, 60)}</bdi> <bdi>${printable(job.collection, 60)}</bdi></td>
<td class="${STATES[job.state].tone}">${job.state}</td>
<td class="number">${counted(job.rows, 'row')}</td>
<td>${asOfText(job, now)}${nextRunText(job, now)}${job.notes.map((note) => html`<p class="quiet"><bdi>${printable(note, 500)}</bdi></p>`)}</td>
</tr>`
}

function capitalized(text: string): string {
  const shown = printable(text, 1000)
  return shown.charAt(0).toUpperCase() + shown.slice(1)
}
