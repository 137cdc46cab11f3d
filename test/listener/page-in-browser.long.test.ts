import fs from 'node:fs'
import { chromium } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { openListener } from '../../src/listener/server.ts'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'
import { at, failedBy, listOf, statusOf } from '../helpers/status.ts'

const EXECUTABLE = '/usr/bin/chromium'
const HAS_BROWSER = fs.existsSync(EXECUTABLE)

if (!HAS_BROWSER)
  process.stderr.write(
    `the test of the status page in a browser is skipped: ${EXECUTABLE} is not installed\n`,
  )

const EVIL = `"><img src=x onerror=alert(1)></style><script>alert(1)</script>\u202e`

describe.runIf(HAS_BROWSER)('the status page in a browser', () => {
  it.each([360, 1400])('fits %i pixels, complains of nothing, and asks for itself alone', async (width) => {
    const status = statusOf([
      listOf(EVIL, failedBy('NETWORK', EVIL)),
      listOf('acme', { held_since: at(1), held_reason: 'long'.repeat(100) }),
      listOf('globex'),
    ])
    const listener = await openListener({ host: '127.0.0.1', port: 0 }, Date.now)
    listener.serve({
      health: async () => ({ stalled: null, unusable: null }),
      status: async () => status,
      onError: () => {},
    })
    const browser = await chromium.launch({ executablePath: EXECUTABLE })
    atEndOfFile(async () => {
      await browser.close()
      await listener.close()
    })
    const page = await browser.newPage({ viewport: { width, height: 800 } })
    const seen: string[] = []
    page.on('request', (request) => seen.push(request.url()))
    page.on('console', (message) => seen.push(message.text()))
    page.on('pageerror', (error) => seen.push(error.message))
    page.on('dialog', (dialog) => seen.push(dialog.message()))

    await page.goto(listener.url)

    expect(seen).toEqual([listener.url])
    expect(await page.title()).toMatch(/^2 of 3 lists need attention/)
    // A style that the Content-Security-Policy refuses would leave the rule out.
    expect(await page.evaluate('getComputedStyle(document.querySelector("h1")).borderLeftWidth')).toBe('6px')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(await page.locator('tbody tr').count()).toBe(3)
  })
})
