import path from 'node:path'
import { NAMES } from '../bare-loops.ts'
import type { Bench, Scenario } from '../bench.ts'
import { type BenchMirror, createMirror } from '../mirrors.ts'
import type { Row } from '../row.ts'
import { whileServing } from '../serving.ts'
import { median } from '../statistics.ts'
import { digits } from '../table.ts'
import { firstSyncs } from './first-syncs.ts'
import { largeMirror } from './large-mirror.ts'

/** Whether memory, and the time for a page, stay as they are however long the list is. */
export const memory: Scenario = {
  name: 'memory',
  run: async (bench) => [...(await firstRows(bench)), ...(await largeRows(bench))],
}

async function firstRows(bench: Bench): Promise<Row[]> {
  const { ours, got } = await firstSyncs(bench, false)
  const what = `first sync of ${bench.sizes.orders.toLocaleString('en')} orders`
  return [
    peakRow(what, ours, got),
    curveRow(
      what,
      ours.map(({ tenths }) => tenths),
    ),
  ]
}

/** What a large mirror costs each command that reads or writes all of it. */
async function largeRows(bench: Bench): Promise<Row[]> {
  if (bench.sizes.large === null) return []
  const { orders } = bench.sizes.large
  const { first, got, folder } = await largeMirror(bench)
  const what = `first sync of ${orders.toLocaleString('en')} orders`
  const rows = [peakRow(what, [first], [got]), curveRow(what, [first.tenths])]
  await whileServing({ orders, onDemand: true }, async ({ url }) => {
    const mirror = createMirror({ folder, url })
    for (const command of await knownCommands(mirror, folder)) {
      bench.tell(`  ${command[0]}`)
      const measured = await mirror.run(command, { peakIn: folder })
      rows.push(peakRow(`${command[0]}, ${orders.toLocaleString('en')} orders`, [measured], [got]))
    }
  })
  return rows
}

/** Those that are there yet, by the program's own help. */
async function knownCommands(mirror: BenchMirror, folder: string): Promise<string[][]> {
  const { stdout: help } = await mirror.run(['--help'])
  const commands = [
    ['export', 'orders', '--format', 'ndjson', '--output', path.join(folder, 'export.ndjson')],
    ['query', 'SELECT * FROM orders', '--format', 'csv'],
    ['verify'],
    ['rebuild'],
  ]
  return commands.filter(([name]) => new RegExp(`^ +${name}\\b`, 'm').test(help))
}

interface Peak {
  peakKb: number | null
}

function peakRow(what: string, ours: readonly Peak[], got: readonly Peak[]): Row {
  const peaks = (measured: readonly Peak[]) => measured.map(({ peakKb }) => peakKb ?? Number.NaN)
  return {
    scenario: 'memory',
    what: `peak of ${what}`,
    unit: 'kB',
    ours: peaks(ours),
    against: `${NAMES.got}, first sync`,
    others: peaks(got),
  }
}

/** `rounds`: of each the milliseconds a page, by tenths. */
function curveRow(what: string, rounds: readonly (readonly number[])[]): Row {
  const tenths = (rounds[0] ?? []).map((_, tenth) => median(rounds.map((round) => round[tenth] ?? 0)))
  return {
    scenario: 'memory',
    what: `last tenth of the ${what}`,
    unit: 'ms a page',
    ours: rounds.map((round) => round.at(-1) ?? 0),
    against: 'its first tenth',
    others: rounds.map((round) => round[0] ?? 0),
    note: `tenths: ${tenths.map(digits).join(' ')}`,
  }
}
