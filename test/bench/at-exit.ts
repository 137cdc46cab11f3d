import fs from 'node:fs'
import process from 'node:process'

// Loaded before a program (`--import`): at its end writes what it cost to the file FIGURES, as JSON.

const { FIGURES } = process.env
process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  const figures = { cpuMs: (userCPUTime + systemCPUTime) / 1000, peakMb: maxRSS / 1024 }
  if (FIGURES !== undefined) fs.writeFileSync(FIGURES, JSON.stringify(figures))
})
