import { html, raw } from 'hono/html'
import { asOfText, daemonText, nextRunText, problemLines } from '../report/status-text.ts'
import type { JobStatus, Status } from '../report/status.ts'
import { gravestFirst, type State, STATES } from '../report/verdict.ts'
import { counted, printable } from '../text.ts'

const STYLE = `
:root { color-scheme: light dark; --line: #d5d9df; --quiet: #555d68; --good: #1a7a35; --warn: #8a5700; --bad: #b3261e; --busy: #0a5cc2; }
@media (prefers-color-scheme: dark) {
  :root { --line: #343a43; --quiet: #a0a8b3; --good: #5ecb7a; --warn: #e5b450; --bad: #ff8a80; --busy: #7db4ff; }
}
body { margin: 0 auto; max-width: 76rem; padding: 1rem 1.25rem 2rem; font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; padding-left: .8rem; border-left: 6px solid; font-size: 1.3rem; line-height: 1.3; }
h1 span { color: CanvasText; }
h2 { margin: 1.6rem 0 .4rem; font-size: 1rem; }
p { margin: .3rem 0; }
code { display: block; margin: .3rem 0; padding: .4rem .6rem; border: 1px solid var(--line); user-select: all; }
.quiet, th { color: var(--quiet); font-size: .9rem; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); } .busy { color: var(--busy); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .9rem .35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: 400; }
td:first-child { font-weight: 600; }
td[class] { white-space: nowrap; }
@media (max-width: 44rem) {
  thead { position: absolute; clip-path: inset(50%); }
  tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0; }
  td:first-child, td:last-child { flex: 1 1 100%; }
}
`

/** The status page: the verdict, what to do, what is wrong, the lists. Everything from outside goes through `shown`. For want of its empty icon a browser would ask for /favicon.ico. */
export async function pageHtml(status: Status): Promise<string> {
  const { verdict, next, notes, now, jobs } = status
  const title = shown(`${verdict.charAt(0).toUpperCase()}${verdict.slice(1)}`)
  const problems = problemLines(status, jobs)
  const facts = [
    `read at ${now.slice(0, 19).replace('T', ' ')} UTC`,
    `daemon: ${daemonText(status)}`,
    `admin-mirror ${status.program_version}`,
    status.database,
  ]
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="15">
<title>${title} - admin-mirror</title>
<link rel="icon" href="data:,">
<style>${raw(STYLE)}</style>
</head>
<body>
<h1 class="${toneOf(status)}"><span>${title}</span></h1>
${next.length > 0 && html`<h2>What to do</h2>`}
${next.map(
  ({ say, command }) =>
    html`${say !== null && html`<p><bdi>${printable(say, Infinity)}</bdi>${command !== null && ':'}</p>`}${command !== null && html`<code><bdi>${printable(command, Infinity)}</bdi></code>`}`,
)}
${problems.length > 0 && html`<h2>What is wrong</h2>${problems.map(paragraph)}`}
<h2>${counted(jobs.length, 'list')}</h2>
<table>
<thead><tr><th>list</th><th>state</th><th>rows</th><th>as of</th></tr></thead>
<tbody>${gravestFirst(jobs).map((job) => listRow(job, now))}</tbody>
</table>
${notes.length > 0 && html`<h2>Notes</h2>${notes.map(paragraph)}`}
<p class="quiet">${shown(facts.join(' · '))}</p>
</body>
</html>
`
  return page.toString()
}

function toneOf({ check_exit_code: code, next, jobs }: Status): (typeof STATES)[State]['tone'] {
  if (code !== 0) return 'bad'
  if (next.length > 0 || jobs.some(({ state }) => STATES[state].tone === 'warn')) return 'warn'
  return jobs.some(({ state }) => state === 'first reading') ? 'busy' : 'good'
}

/** `html` escapes it. */
function shown(text: string): string {
  return printable(text, 1000)
}

function paragraph(text: string) {
  return html`<p><bdi>${shown(text)}</bdi></p>`
}

function listRow(job: JobStatus, now: string) {
  return html`<tr>
<td><bdi>${printable(job.organization, 60)}</bdi> <bdi>${printable(job.collection, 60)}</bdi></td>
<td class="${STATES[job.state].tone}">${job.state}</td>
<td class="number">${counted(job.rows, 'row')}</td>
<td>${asOfText(job, now)}${nextRunText(job, now)}${job.notes.map((note) => html`<p class="quiet"><bdi>${printable(note, 500)}</bdi></p>`)}</td>
</tr>`
}
