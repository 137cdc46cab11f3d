import fs from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded before a program (`--import`): at its end, writes the processor time that it took, in ms, to the file CPU_FILE.

const file = process.env.CPU_FILE
if (isMainThread && file !== undefined) {
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage()
    fs.writeFileSync(file, String((userCPUTime + systemCPUTime) / 1000))
  })
}
