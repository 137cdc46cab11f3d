import { describe, expect, it } from 'vitest'
import { pageHtml } from '../../src/listener/page.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { failedBy, listOf, NEVER, statusOf, TOKEN } from '../helpers/status.ts'

const pageOf = (...lists: Parameters<typeof statusOf>[0]) => pageHtml(statusOf(lists))

describe('the status page', () => {
  it('says first how things are and what to do, then why, then each list, the worst first', async () => {
    const tried = { ...failedBy('FORBIDDEN'), running: true }
    const page = await pageOf(listOf('globex'), listOf('acme', TOKEN), listOf('hooli', tried))

    const parts = [
      '<h1 class="bad"><span>2 of 3 lists need attention (1 held for a refused token, 1 failed: the token has no access to this organization)</span></h1>',
      '<h2>What to do</h2>',
      '<p><bdi>put in a new token, or if the old one is valid again</bdi>:</p><code><bdi>admin-mirror resume --org acme</bdi></code>',
      '<p><bdi>wait: it is tried again by itself</bdi></p>',
      '<h2>What is wrong</h2>',
      'acme orders: token refused since',
      '<h2>3 lists</h2>',
      '<bdi>acme</bdi> <bdi>orders</bdi>',
      '<bdi>globex</bdi> <bdi>orders</bdi>',
      'daemon: runs since',
    ]
    const places = parts.map((part) => page.indexOf(part))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((a, b) => a - b))
  })

  it('has each command whole, however many organizations it names', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `org-${index}`)

    const page = await pageOf(listOf('well'), ...names.map((name) => listOf(name, TOKEN)))

    const command = `admin-mirror resume${names.map((name) => ` --org ${name}`).join('')}`
    expect(page).toContain(`<code><bdi>${command}</bdi></code>`)
  })

  it('refreshes itself, and runs and loads nothing', async () => {
    const page = await pageOf(listOf('acme'))

    expect(page).toContain('<title>1 of 1 lists are well - admin-mirror</title>')
    expect(page).toContain('<meta http-equiv="refresh" content="15">')
    expect(page).toMatch(/read at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC · daemon: .* · admin-mirror \d/)
    expect(page).not.toMatch(/<script|src=|url\(/)
    expect(page.match(/<h2>.*<\/h2>/g)).toEqual(['<h2>1 list</h2>'])
  })

  it.each<[state: string, tone: string, heading: string, changed: Partial<StatusRow>]>([
    ['read', 'good', 'good', {}],
    ['being read', 'busy', 'good', { running: true }],
    ['first reading', 'busy', 'busy', { ...NEVER, running: true }],
    ['uncertain', 'warn', 'warn', { untrusted: 'it met a reject' }],
    ['unfinished', 'warn', 'warn', { last_run_status: 'interrupted' }],
    ['failing', 'bad', 'bad', { ...failedBy(), running: true }],
  ])('shows by its colours that a list is: %s', async (state, tone, heading, changed) => {
    const page = await pageOf(listOf('acme', changed))

    expect(page).toContain(`<td class="${tone}">${state}</td>`)
    expect(page).toContain(`<h1 class="${heading}">`)
  })

  it('escapes whatever a name or an error holds', async () => {
    const evil = '<img src=x onerror=alert(1)>\u202e&"'

    const page = await pageOf(listOf(evil, failedBy('NETWORK', evil)))

    expect(page).not.toMatch(/<img|\u202e/)
    expect(page).toContain('&lt;img src=x onerror=alert(1)&gt;\\u{202e}&amp;&quot;')
  })
})
