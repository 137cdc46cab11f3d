import fs from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded before a program (`--import`): when it ends, writes its peak resident set, in kB, to the file that PEAK_FILE names.

const file = process.env.PEAK_FILE
if (isMainThread && file !== undefined) {
  process.on('exit', () => fs.writeFileSync(file, String(process.resourceUsage().maxRSS)))
}
