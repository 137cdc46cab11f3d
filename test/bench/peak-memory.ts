import fs from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded before a program (`--import`): at its end, writes its peak resident set, in kB, to the file PEAK_FILE.

const file = process.env.PEAK_FILE
if (isMainThread && file !== undefined) {
  process.on('exit', () => fs.writeFileSync(file, String(process.resourceUsage().maxRSS)))
}
