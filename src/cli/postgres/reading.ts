import { distinctNames } from '../../store/core/reading.ts'
import { runRule } from '../../store/postgres/connection.ts'
import { holdsMirror } from '../../store/postgres/migrate.ts'
import { isUnknownName, meaningOfSql, stream, withPlaceholders } from '../../store/postgres/query.ts'
import { noMirror } from '../mirror.ts'
import { assertExport, type ReadingTask, writeResult } from '../reading.ts'
import type { Runtime } from '../runtime.ts'
import { connectForReading } from './mirror.ts'

/**
 * Does the task on one snapshot, in a transaction that can only read, even if the role may write. Throws UsageError and
 * MirrorError.
 */
export async function readOnServer(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { work, config, database } = task
  // Usage is checked before the server is asked.
  const statement = work.kind === 'query' ? withPlaceholders(work.sql, work.parameters) : null
  const meaning = (error: unknown) => meaningOfSql(error, statement?.names ?? [])
  const server = await connectForReading(task, runtime)
  try {
    if (!(await holdsMirror(server))) {
      // So is SQL that is wrong in any mirror, before it is said that there is none yet.
      if (statement)
        await server.readOnce(
          (sql) => stream(sql, statement),
          (error) => (isUnknownName(error) ? noMirror(database) : meaning(error)),
        )
      else if (work.kind === 'export' && config) assertExport(work, config)
      throw noMirror(database)
    }
    await server.readOnce(
      (sql) =>
        writeResult(
          runtime,
          {
            async query(text, parameters) {
              const { columns, ...rest } = await stream(sql, withPlaceholders(text, parameters))
              return { columns: distinctNames(columns), ...rest }
            },
            ask: (rule) => runRule(sql.ask, rule),
          },
          task,
        ),
      meaning,
    )
  } finally {
    await server.close()
  }
}
