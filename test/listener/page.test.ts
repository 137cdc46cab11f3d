import { describe, expect, it } from 'vitest'
import { pageHtml } from '../../src/listener/page.ts'
import type { JobStatus } from '../../src/report/status.ts'
import { at, failedBy, job, overview } from './overviews.ts'

describe('the page says of a list that a process works on', () => {
  const running = { running: true, last_run_status: 'running' as const, last_run_at: at(9) }
  const again = { retry_since: at(9), retry_until: at(-2), retry_error: 'acme orders page 1: <500>' }

  it.each<[what: string, job: Partial<JobStatus>, shown: string, others: RegExp]>([
    ['that it is read', { work: 'schedule' }, 'being read', /compared|asking|verify/],
    [
      'that it is refreshed',
      { work: 'refresh', last_run_status: 'succeeded' },
      'running: being refreshed',
      /verify|compared/,
    ],
    [
      'what it waits for, since when and after which error',
      { work: 'manual', ...again },
      `waits until ${at(-2)} (2 minutes) to ask again, since ${at(9)} (9 minutes): acme orders page 1: &lt;500&gt;`,
      /verify|compared|being read/,
    ],
    [
      'that the page is asked for at this moment',
      { work: 'manual', ...again, retry_until: at(1) },
      `asks again, since ${at(9)} (9 minutes)`,
      /waits until/,
    ],
  ])('%s', async (_what, more, shown, others) => {
    const html = await pageHtml(overview([job('acme', 'orders', { ...running, ...more })]))

    expect(html).toContain(shown)
    const table = html.slice(html.indexOf('<table'), html.indexOf('</table'))
    expect(table).not.toMatch(others)
  })
})

it('says how the runs that are kept ended, also where there is one', async () => {
  const shown = overview([job('acme')])
  const [[key, runs] = ['', undefined]] = shown.runs
  const only = new Map(runs ? [[key, { ...runs, marks: 's' }]] : [])

  expect(await pageHtml(shown)).toContain('last 5 runs: 4 succeeded, 1 failed')
  expect(await pageHtml({ ...shown, runs: only })).toContain('the only run: 1 succeeded')
})

it('says when the published file was made', async () => {
  const published = { file: '/data/copy.db', created_at: at(600), bytes: 12_000_000 }

  expect(await pageHtml(overview([], { published }))).toContain(`made 10 hours ago, ${at(600)}, 12.0 MB`)
})

it.each([
  [true, 'warn'],
  [false, 'good'],
])('a list that is not read whole yet, configured: %s, makes the page %s', async (configured, tone) => {
  const html = await pageHtml(overview([job('acme'), job('acme', 'visits', { configured, as_of: null })]))

  expect(html).toContain(`<header class="verdict ${tone}">`)
})

function pageOfSteps(count: number) {
  const jobs = Array.from({ length: count }, (_, step) => job('acme', `c${step}`, { next: `${step}` }))
  return pageHtml(overview(jobs))
}

describe('what needs somebody', () => {
  it.each([
    [1, ''],
    [4, ''],
    [5, ' and 1 more list'],
    [7, ' and 3 more lists'],
  ])('is named once for its %i lists, four of them by name', async (count, more) => {
    const names = Array.from({ length: count }, (_, index) => `c${index}`)
    const html = await pageHtml(overview(names.map((name) => job('a<b', name, { next: 'free the disk' }))))

    const named = names.slice(0, 4).map((name) => `<bdi>a&lt;b ${name}</bdi>`)
    expect(html.match(/<span class="name">(.*?)<\/span>/)?.[1]).toBe(`${named.join(', ')}${more}`)
  })

  it.each([
    ['admin-mirror sync --wait', '<code class="command">admin-mirror sync --wait</code>'],
    [
      'put in a new token: admin-mirror resume --org acme',
      '<p>put in a new token</p>\n<code class="command">admin-mirror resume --org acme</code>',
    ],
    ['free the disk', '<p>free the disk</p>\n</li>'],
    ['restart admin-mirror now', '<p>restart admin-mirror now</p>\n</li>'],
    ['one: two: admin-mirror start', '<p>one: two</p>\n<code class="command">admin-mirror start</code>'],
  ])('says what to do, and what to type: %s', async (next, shown) => {
    expect(await pageHtml(overview([job('acme', 'orders', { next })]))).toContain(shown)
  })

  it('folds what is more than eight steps', async () => {
    expect(await pageOfSteps(8)).not.toContain('more-steps')
    expect(await pageOfSteps(10)).toMatch(/<details id="more-steps"><summary>2 more steps<\/summary><ul><li>/)
  })
})

/** The rows of the table, as text. */
async function rowsOf(more: Partial<JobStatus>): Promise<string[]> {
  const html = await pageHtml(overview([job('acme', 'orders', more)]))
  const rows = html.slice(html.indexOf('<tbody'), html.indexOf('</tbody')).split('</tr>').slice(0, -1)
  return rows.map((row) =>
    row
      .replaceAll(/<svg class="bar"[^>]*aria-label="([^"]*)"><rect width="(\d+)"/g, 'bar $1 $2<')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim(),
  )
}

describe('a list in the table', () => {
  it('that is well has one row, with its coverage', async () => {
    expect(await rowsOf({})).toEqual([expect.stringMatching(/^acme orders .*\bsteady 1,500/)])
    expect(await rowsOf({ coverage: null })).toEqual([expect.stringMatching(/^acme orders .* - 1,500/)])
    expect(await rowsOf({ coverage: 'drifted' })).toEqual([expect.stringMatching(/ drifted 1,500/)])
  })

  it('that fails has a second one, with the reason', async () => {
    const rows = await rowsOf({ last_run_status: 'failed', ...failedBy('NETWORK', 'the server is away') })

    expect(rows).toHaveLength(2)
    expect(rows[1]).toContain('the server is away')
  })

  it('that is being walked has a second one, with how far it is and what it waits for', async () => {
    const walked = {
      running: true,
      last_run_status: 'running',
      walk_percent: 40,
      waiting_until: at(-3),
    } as const
    const [, more] = await rowsOf({ ...walked, waiting_for: 'the rate limit' })

    expect(more).toContain('bar 40 % 400')
    expect(more).toContain('waits 3 minutes: the rate limit')
    expect(await rowsOf({ walk_percent: 40 })).toHaveLength(1)
    expect((await rowsOf({ waiting_until: at(-3) }))[1]).toBe('waits 3 minutes: the rate limit')
  })
})
