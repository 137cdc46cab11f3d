import fs from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

// Loaded before a program (`--import`): at its end, writes its peak resident set, in kB, to the file PEAK_FILE, and the processor time that it
// took, in ms, to the file CPU_FILE, where they are named.

const { PEAK_FILE, CPU_FILE } = process.env
if (isMainThread) {
  process.on('exit', () => {
    const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
    if (PEAK_FILE !== undefined) fs.writeFileSync(PEAK_FILE, String(maxRSS))
    if (CPU_FILE !== undefined) fs.writeFileSync(CPU_FILE, String((userCPUTime + systemCPUTime) / 1000))
  })
}
