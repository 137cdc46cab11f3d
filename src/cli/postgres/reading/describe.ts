import type { Config } from '../../../config/config.ts'
import { describeColumns, summarize } from '../../../store/postgres/read/describe.ts'
import {
  belongsTo,
  collectionsOf,
  type Listed,
  listedNames,
  type Reading,
} from '../../../store/postgres/read/listed.ts'
import { chunked } from '../../output/write-all.ts'
import { type Described, describedPieces } from '../../reading/describe.ts'
import { assertNamed } from '../../reading/named.ts'
import { screenOf } from '../../reading/output.ts'
import type { DescribeWork } from '../../reading/task.ts'
import type { Runtime } from '../../runtime.ts'
import { findNamed } from './named.ts'
import { readMirror } from './read-mirror.ts'

/** `describe`: what each column holds, how many rows there are and as of when. */
export async function describePostgres(
  config: Config,
  runtime: Runtime,
  work: Omit<DescribeWork, 'kind'>,
): Promise<number> {
  const assertUsage = () => {
    if (work.name !== null) assertNamed(work.name, work.configured)
  }
  return await readMirror(config, runtime, { output: null, assertUsage }, async (sql) => {
    const names =
      work.name === null ? (await collectionsOf(sql)).map(({ collection }) => collection) : [work.name]
    const listed: Listed[] = []
    for (const name of names) listed.push(await findNamed(sql, name, work.configured))
    const all: Described[] = []
    for (const one of listed) all.push(await describedOf(sql, one))
    return chunked(describedPieces(all, work, screenOf(runtime, null).width))
  })
}

async function describedOf(sql: Reading, listed: Listed): Promise<Described> {
  const { name, collection } = listed
  const names = await listedNames(sql)
  return {
    name,
    views: names.filter((one) => one !== name && belongsTo(collection, one)),
    summary: await summarize(sql, collection),
    columns: await describeColumns(sql, listed),
  }
}
