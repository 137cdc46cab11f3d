import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { createBench, runScenarios } from './bench.ts'
import { describeMachine } from './machine.ts'
import { killMeasured } from './processes.ts'
import { summaryOf } from './row.ts'
import { SCENARIOS } from './scenarios/all.ts'
import { SIZES } from './sizes.ts'
import { machineLine, markdownTable } from './table.ts'

// npm run bench: how this program compares with bare loops over the same pages, as a table of ratios.

const names = SCENARIOS.map(({ name }) => name)
const USAGE = `npm run bench -- [--quick | --full] [--json] [--only NAME]...\nNAME is one of: ${names.join(', ')}`

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean', default: false },
        full: { type: 'boolean', default: false },
        smoke: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
      },
    })
    const unknown = values.only.find((name) => !names.includes(name))
    if (unknown !== undefined) throw new Error(`${unknown} is no scenario`)
    const [size = 'normal' as const, ...more] = (['quick', 'full', 'smoke'] as const).filter(
      (name) => values[name],
    )
    if (more.length > 0) throw new Error(`--${size} and --${more[0]} exclude each other`)
    return { size, json: values.json, only: values.only }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`)
    return process.exit(2)
  }
}

const { size, json, only } = readOptions()
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-bench-'))
process.on('exit', () => {
  killMeasured()
  fs.rmSync(folder, { recursive: true, force: true })
})
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.on(signal, () => process.exit(code))

const tell = (words: string) => process.stderr.write(`${words}\n`)
const chosen = SCENARIOS.filter(({ name }) => only.length === 0 || only.includes(name))
const rows = await runScenarios(chosen, createBench({ sizes: SIZES[size], folder, tell }))
const machine = describeMachine()
if (json) process.stdout.write(`${JSON.stringify({ machine, size, rows: rows.map(summaryOf) }, null, 2)}\n`)
else process.stdout.write(`${machineLine(machine)}; ${size}\n\n${markdownTable(rows)}\n`)
