import fs from 'node:fs'
import { expect, it } from 'vitest'
import { parquet } from '../../src/cli/output/parquet.ts'
import { duckdb } from '../helpers/duckdb.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

// How rows are written, where commands cannot show it; what they show: test/cli/commands/reading.test.ts.

it('a row group of Parquet ends at 16 MiB of text, and is written then', async () => {
  const file = `${tempFolder()}/rows.parquet`
  const rows = Array.from({ length: 5 }, () => ['x'.repeat(8 * 1024 * 1024)])
  const pieces = await Array.fromAsync(parquet({ columns: ['v'], types: ['TEXT'], batches: [rows] }))
  fs.writeFileSync(file, Buffer.concat(pieces.map((piece) => Buffer.from(piece))))

  const counts = "SELECT row_group_num_rows FROM parquet_metadata('rows.parquet') ORDER BY row_group_id"
  expect(await duckdb(() => file, counts)).toEqual([[2n], [2n], [1n]])
  expect(pieces).toHaveLength(3)
})
