import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { atEndOfFile } from '../helpers/at-end-of-file.ts'

const EXECUTABLE = '/usr/bin/chromium'

export const HAS_BROWSER = fs.existsSync(EXECUTABLE)

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
export interface Seen {
  page: Page
  requests: string[]
  /** Messages of the console, such as violations of the Content-Security-Policy, and uncaught errors. */
  complaints: string[]
  dialogs: string[]
}

/** A page in a browser with a profile of its own. */
export async function openBrowser(options: BrowserContextOptions = {}): Promise<Seen> {
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
