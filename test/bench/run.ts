import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { killMeasured } from './processes.ts'
import type { Bench } from './rounds.ts'
import { runScenarios, SCENARIOS } from './scenarios.ts'
import { markdownTable, ratioOf } from './table.ts'

// npm run bench: compares this program with a bare loop over the same pages, and with another checkout.

const NAMES = Object.keys(SCENARIOS)
const USAGE = `npm run bench -- [options]

--orders N       orders of the longest list (100000)
--rounds N       rounds (5)
--only NAME      only this scenario; may be repeated: ${NAMES.join(', ')}
--against DIR    another checkout of this program, with its modules installed, to compare with
--json           all figures as JSON
`

function readOptions() {
  const { values } = parseArgs({
    options: {
      orders: { type: 'string', default: '100000' },
      rounds: { type: 'string', default: '5' },
      only: { type: 'string', multiple: true, default: [] },
      against: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const unknown = values.only.find((name) => !NAMES.includes(name))
  if (unknown !== undefined) throw new Error(`there is no scenario ${unknown}`)
  const [orders, rounds] = [Number(values.orders), Number(values.rounds)]
  if (!(Number.isSafeInteger(orders) && orders > 0 && Number.isSafeInteger(rounds) && rounds > 0))
    throw new Error('--orders and --rounds need a number from 1 on')
  const programs: Bench['programs'] = { ours: path.resolve(import.meta.dirname, '../../src/bin.js') }
  if (values.against !== undefined) {
    const program = path.resolve(values.against, 'src/bin.js')
    if (!fs.existsSync(program)) throw new Error(`there is no ${program}`)
    programs[values.against] = program
  }
  const names = NAMES.filter((name) => values.only.length === 0 || values.only.includes(name))
  return { orders, rounds, programs, names, json: values.json, help: values.help }
}

function optionsOrExit() {
  try {
    const options = readOptions()
    if (!options.help) return options
    process.stdout.write(USAGE)
    return process.exit(0)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
    return process.exit(2)
  }
}

const { names, json, ...options } = optionsOrExit()
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-bench-'))
process.on('exit', () => {
  killMeasured()
  fs.rmSync(folder, { recursive: true, force: true })
})
process.on('SIGINT', () => process.exit(130))
process.on('SIGTERM', () => process.exit(143))

const report = (words: string) => process.stderr.write(`${words}\n`)
const rows = await runScenarios(names, { ...options, folder, report })
const [processor] = os.cpus()
const machine =
  `${processor?.model ?? 'unknown processor'}, ${os.availableParallelism()} cores, ` +
  `${Math.round(os.totalmem() / 1024 ** 3)} GB, ${os.type()} ${os.release()}, Node ${process.versions.node}`
const figures = { machine, rows: rows.map((row) => ({ ...row, ratio: ratioOf(row) })) }
process.stdout.write(
  json ? `${JSON.stringify(figures, null, 2)}\n` : `${machine}\n\n${markdownTable(rows)}\n`,
)
