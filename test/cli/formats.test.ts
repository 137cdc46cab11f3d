import fs from 'node:fs'
import { expect, it } from 'vitest'
import { textPieces } from '../../src/cli/output/formats.ts'
import { parquet } from '../../src/cli/output/parquet.ts'
import type { Value } from '../../src/store/core/query.ts'
import { duckdb } from '../helpers/duckdb.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

// How rows are written, where commands cannot show it; what they show: test/cli/commands/reading.test.ts.

const rowsOf = (values: readonly Value[], type = '') => ({
  columns: ['v'],
  types: [type],
  batches: (async function* () {
    yield values.map((value) => [value])
  })(),
})

it.each<[string, Value[], groups: bigint[]]>([
  ['20,000 rows', Array.from({ length: 20_001 }, (_, at) => BigInt(at)), [20_000n, 1n]],
  ['16 MiB of text', Array.from({ length: 5 }, () => 'x'.repeat(8 * 1024 * 1024)), [2n, 2n, 1n]],
])('a row group of Parquet ends at %s, and is written then', async (_, values, groups) => {
  const file = `${tempFolder()}/rows.parquet`
  const pieces = await Array.fromAsync(parquet(rowsOf(values)))
  fs.writeFileSync(file, Buffer.concat(pieces.map((piece) => Buffer.from(piece))))

  const counts = "SELECT row_group_num_rows FROM parquet_metadata('rows.parquet') ORDER BY row_group_id"
  expect(await duckdb(() => file, counts)).toEqual(groups.map((rows) => [rows]))
  expect(pieces).toHaveLength(groups.length)
})

it('a table shows bytes as SQL writes them, cut on a terminal', async () => {
  const bytes = Buffer.from('00ff'.repeat(40), 'hex')
  const shown = async (isTerminal: boolean) =>
    (await Array.fromAsync(textPieces('table', rowsOf([bytes]), isTerminal))).join('').split('\n')[2]

  expect(await shown(false)).toBe(`x'${'00ff'.repeat(40)}'`)
  expect(await shown(true)).toBe(`x'${'00ff'.repeat(15)}'`)
})
