import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Overview } from '../../src/listener/overview.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'
import { listen } from './listening.ts'
import { at, failedBy, job, overview, source } from './overviews.ts'

const EXECUTABLE = '/usr/bin/chromium'

const HAS_BROWSER = fs.existsSync(EXECUTABLE)

if (!HAS_BROWSER)
  process.stderr.write(
    `the tests of the status page in a browser are skipped: ${EXECUTABLE} is not installed\n`,
  )

const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** What a browser did on its own account while a page was open. */
interface Seen {
  page: Page
  requests: string[]
  /** Messages of the console, such as violations of the Content-Security-Policy, and uncaught errors. */
  complaints: string[]
  dialogs: string[]
}

/** A page in a browser with a profile of its own. */
async function openBrowser(options: BrowserContextOptions = {}): Promise<Seen> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-browser-'))
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: EXECUTABLE,
    args: ARGUMENTS,
    ...options,
  })
  atEndOfFile(async () => {
    await context.close()
    fs.rmSync(folder, { recursive: true, force: true })
  })
  const page = await context.newPage()
  const seen: Seen = { page, requests: [], complaints: [], dialogs: [] }
  page.on('request', (request) => seen.requests.push(request.url()))
  page.on('console', (message) => seen.complaints.push(message.text()))
  page.on('pageerror', (error) => seen.complaints.push(error.message))
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  return seen
}

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "'; alert(1); '",
  '</style><script>alert(1)</script>',
  '\u202egpj.exe',
  '{{constructor.constructor("alert(1)")()}}',
]

/** A list of each state, under hostile names, with hostile errors. */
function hostileOverview(): Overview {
  const [held = '', failed = '', brake = '', ...others] = HOSTILE
  const jobs = [
    job(held, 'orders', {
      held_since: at(50),
      held_reason: held,
      next: `give it a token: admin-mirror resume --org '${held}'`,
    }),
    job(failed, failed, {
      last_run_status: 'failed',
      error_code: 'SERVER_ERROR',
      error_message: `</td></tr></table>${failed}`,
      next: `look at the error, then: admin-mirror sync --org '${failed}'`,
    }),
    job(brake, 'orders', {
      removals_held: 12,
      held_why: 'brake',
      next: "admin-mirror sync --org 'x' --accept-removals",
    }),
    ...others.map((name) =>
      job(name, name, { running: true, walk_percent: 44, waiting_for: name, waiting_until: at(-1) }),
    ),
  ]
  return overview(jobs, {
    budgets: [{ organizations: HOSTILE, requests: 60, throttled: 2, per_minute: 60 }],
    new_columns: HOSTILE.map((name) => ({
      collection: name,
      column: name,
      path: `$.${name}`,
      type: 'TEXT',
      first_seen_at: at(9),
    })),
    published: { file: `/data/${held}.db`, created_at: at(3), bytes: 5 },
  })
}

/** Whether anything is wider than the window. */
const OVERFLOWS = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'

/** The least contrast of a text with its ground, by WCAG's formula. */
const LEAST_CONTRAST = `(() => {
  const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(channel)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const groundOf = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor
      if (color !== 'rgba(0, 0, 0, 0)') return color
    }
    return 'rgb(255, 255, 255)'
  }
  return Math.min(...[...document.querySelectorAll('main *')].filter((one) => one.children.length === 0 && one.textContent.trim()).map((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(groundOf(one))].sort((x, y) => y - x)
    return (a + 0.05) / (b + 0.05)
  }))
})()`

describe.skipIf(!HAS_BROWSER)('the status page in a browser', () => {
  it('shows hostile names as text: nothing runs, nothing is asked for elsewhere', async () => {
    const { url } = await listen(source(hostileOverview()))
    const { page, requests, complaints, dialogs } = await openBrowser()

    await page.goto(url(''))
    for (const summary of await page.locator('summary').all()) await summary.click()
    const text = await page.locator('main').innerText()

    for (const name of HOSTILE.filter((one) => one !== '\u202egpj.exe')) expect(text).toContain(name)
    expect(text).toContain('\\u{202e}gpj.exe')
    expect(text).not.toContain('\u202e')
    expect(await page.locator('main img, main script, main style').count()).toBe(0)
    expect(requests.filter((asked) => asked !== url(''))).toEqual([])
    expect({ complaints, dialogs }).toEqual({ complaints: [], dialogs: [] })
  })

  it.each([
    ['light', 1200],
    ['dark', 1200],
    ['light', 390],
    ['dark', 390],
    ['light', 320],
  ] as const)('is legible in %s on %d pixels', async (colorScheme, width) => {
    const { url } = await listen(source(hostileOverview()))
    const { page } = await openBrowser({ colorScheme, viewport: { width, height: 800 } })

    await page.goto(url(''))

    expect(await page.evaluate(OVERFLOWS)).toBe(false)
    expect(await page.evaluate(LEAST_CONTRAST)).toBeGreaterThanOrEqual(4.5)
  })

  it('shows the verdict, the worst list first, and the command to type', async () => {
    const { url } = await listen(
      source(overview([job('well'), job('bad', 'orders', hostileOverview().status.jobs[2])])),
    )
    const { page } = await openBrowser()

    await page.goto(url(''))

    expect(await page.title()).toContain('1 of 2 lists')
    expect(await page.locator('tbody .state').allInnerTexts()).toEqual(['removals held', 'well'])
    expect(await page.locator('code.command').allInnerTexts()).toEqual([
      "admin-mirror sync --org 'x' --accept-removals",
    ])
  })

  it('replaces itself, keeps what was unfolded, and says so when no answer comes', async () => {
    const jobs = Array.from({ length: 40 }, (_, index) => job(`organization-${index}`))
    let known = overview(jobs)
    let time = 1_000_000
    const given = source(known, { overview: () => known })
    const { listener, url } = await listen(given, { now: () => time })
    const { page } = await openBrowser()
    await page.goto(url(''))
    await page.locator('#more-lists summary').click()
    expect(await page.locator('#stale').isVisible()).toBe(false)

    known = overview([...jobs, job('late', 'orders', { ...failedBy('NETWORK', 'just now'), next: 'look' })])
    time += 60_000
    await page.getByText('just now').first().waitFor()
    const isUnfolded = await page.locator('#more-lists').getAttribute('open')
    await listener.close()
    await page.locator('#stale').waitFor({ state: 'visible' })

    expect(isUnfolded).not.toBeNull()
    expect(await page.locator('#stale').innerText()).toContain('no answer')
    expect(await page.title()).toContain('no answer')
  })

  it('reads well without JavaScript, and loads again by itself', async () => {
    const { url } = await listen(source(hostileOverview()))
    const { page } = await openBrowser({ javaScriptEnabled: false })

    await page.goto(url(''))

    expect(await page.locator('h1').innerText()).toContain('lists')
    expect(await page.locator('tbody .state').count()).toBe(HOSTILE.length)
    expect(await page.locator('noscript').innerHTML()).toContain('http-equiv="refresh"')
  })

  it('folds the lists of five hundred organizations', async () => {
    const jobs = Array.from({ length: 500 }, (_, index) => [
      job(`organization-${index}`, 'orders'),
      job(`organization-${index}`, 'establishments'),
    ]).flat()
    const { url } = await listen(source(overview(jobs)))
    const { page } = await openBrowser({ viewport: { width: 390, height: 800 } })

    await page.goto(url(''))

    expect(await page.locator('#more-lists').getAttribute('open')).toBeNull()
    expect(await page.locator('#more-lists summary').innerText()).toBe('970 more lists, all well')
    const height = Number(await page.evaluate('document.documentElement.scrollHeight'))
    await page.locator('#more-lists summary').click()
    expect(Number(await page.evaluate('document.documentElement.scrollHeight'))).toBeGreaterThan(10 * height)
  })
})
