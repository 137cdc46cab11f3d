import { createHash } from 'node:crypto'

export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #ffffff; --raised: #f5f6f8; --line: #d5d9df; --text: #1a1d21; --quiet: #555d68;
  --good: #1a7a35; --warn: #8a5700; --bad: #b3261e; --busy: #0a5cc2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #101317; --raised: #1a1e24; --line: #343a43; --text: #e4e8ed; --quiet: #a0a8b3;
    --good: #5ecb7a; --warn: #e5b450; --bad: #ff8a80; --busy: #7db4ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 76rem; padding: 1rem 1.25rem 2rem; background: var(--ground); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { margin: 0; font-size: 1.3rem; line-height: 1.3; font-weight: 600; }
h2 { margin: 1.9rem 0 .5rem; font-size: 1rem; font-weight: 600; }
p { margin: .3rem 0; }
a { color: var(--busy); }
code { font: .87em/1.45 ui-monospace, Menlo, Consolas, monospace; }
.command { display: block; padding: .35rem .6rem; background: var(--raised); border: 1px solid var(--line); user-select: all; }
.quiet { color: var(--quiet); }
.small { font-size: .87rem; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); } .busy { color: var(--busy); }
.verdict { padding: .1rem 0 .1rem .8rem; border-left: 5px solid currentColor; }
.verdict > * { color: var(--text); }
.verdict > .quiet { color: var(--quiet); }
#stale { margin: 0 0 1rem; padding: .5rem .8rem; border: 1px solid var(--bad); color: var(--bad); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { white-space: nowrap; text-align: left; font-weight: 400; font-size: .87rem; color: var(--quiet); }
th, td { padding: .3rem .9rem .3rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
.number { text-align: right; white-space: nowrap; }
.name { font-weight: 600; }
.state, .age { white-space: nowrap; }
tr.more td { padding-top: 0; }
tr.has-more td { border-bottom: 0; }
td p { margin: 0 0 .15rem; }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: .5rem 0 .6rem; border-bottom: 1px solid var(--line); }
li p { margin: 0 0 .25rem; }
svg { display: block; }
.strip { width: 150px; height: 16px; margin-top: .2rem; }
.bar { width: 20rem; max-width: 100%; height: 7px; margin: .3rem 0; background: var(--line); }
li.row { display: grid; grid-template-columns: 2fr 2fr 20rem; gap: 0 .9rem; align-items: center; padding: .3rem 0; }
.bar rect { fill: var(--busy); }
.strip .good { fill: var(--good); } .strip .warn { fill: var(--warn); } .strip .bad { fill: var(--bad); }
.strip .busy { fill: var(--busy); } .strip .none { fill: var(--line); }
summary { padding: .5rem 0; cursor: pointer; color: var(--busy); }
footer { margin-top: 2.2rem; }
footer a { margin-right: .8rem; }
:focus-visible { outline: 2px solid var(--busy); outline-offset: 2px; }
@media (max-width: 44rem) {
  body { padding: .8rem .9rem 1.5rem; }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .9rem; padding: .45rem 0; border-bottom: 1px solid var(--line); }
  td { display: block; padding: 0; border: 0; }
  td[data-label]::before { content: attr(data-label) ' '; color: var(--quiet); font-size: .87rem; }
  td.name { flex: 1 1 60%; }
  td.wide { flex: 1 1 100%; }
  tr.has-more { padding-bottom: 0; border-bottom: 0; }
  tr.more { padding-top: .1rem; }
  .number { text-align: left; }
  li.row { display: block; }
  li.row .name { margin-right: .6rem; }
}
`

/**
 * Runs in the browser: puts a new reading of the page in place of the old one every five seconds, keeps what was unfolded and
 * what is selected, and says so when no answer comes. Without JavaScript the page loads again by itself.
 */
export const SCRIPT = `
(() => {
  const stale = document.getElementById('stale')
  let answered = new Date()
  let asking = false
  async function refresh() {
    if (asking || document.hidden) return
    asking = true
    try {
      const answer = await fetch(location.pathname, { cache: 'no-store', signal: AbortSignal.timeout(10000) })
      if (!answer.ok) throw new Error((await answer.text()).slice(0, 300))
      const next = new DOMParser().parseFromString(await answer.text(), 'text/html')
      answered = new Date()
      stale.hidden = true
      if (!getSelection().isCollapsed) return
      for (const { id } of document.querySelectorAll('main details[open]'))
        next.getElementById(id)?.setAttribute('open', '')
      document.querySelector('main').replaceWith(next.querySelector('main'))
      document.title = next.title
    } catch (error) {
      const why = error.name === 'Error' ? error.message : 'no answer'
      stale.textContent = 'Old: ' + why + '. What stands below is of ' + answered.toLocaleTimeString() + '.'
      stale.hidden = false
      document.title = 'no answer - admin-mirror'
    } finally {
      asking = false
    }
  }
  setInterval(refresh, 5000)
  document.addEventListener('visibilitychange', refresh)
})()
`

/** Our own style and script alone, named by their hashes; nothing is loaded from anywhere else, and nothing may frame us. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(STYLE)}'`,
  `script-src '${hashOf(SCRIPT)}'`,
  // The script asks for this page again.
  "connect-src 'self'",
  // The empty icon, without which a browser asks for /favicon.ico.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`
}
