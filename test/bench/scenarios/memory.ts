import { NAMES } from '../bare-loops.ts'
import type { Bench, Scenario } from '../bench.ts'
import type { Row } from '../row.ts'
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
  const { first, got, mirror, folder } = await largeMirror(bench)
  const amount = `${orders.toLocaleString('en')} orders`
  const rows = [
    peakRow(`first sync of ${amount}`, [first], [got]),
    curveRow(`first sync of ${amount}`, [first.tenths]),
  ]
  const { stdout: help } = await mirror.run(['--help'])
  for (const command of wholeCommands(folder)) {
    const [name = ''] = command
    if (!new RegExp(`^ +${name}\\b`, 'm').test(help)) continue
    bench.tell(`  ${name}`)
    rows.push(peakRow(`${name}, ${amount}`, [await mirror.run(command, { peakIn: folder })], [got]))
  }
  return rows
}

/** Those that are not there yet are left out. */
function wholeCommands(folder: string): string[][] {
  return [
    ['export', 'orders', '--format', 'ndjson', '--output', `${folder}/export.ndjson`],
    ['query', 'SELECT * FROM orders', '--format', 'csv'],
    ['verify'],
    ['rebuild'],
  ]
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
