import type { Patch } from '../helpers/patch.ts'

/** Counts the statements that write to the mirror, and goes on with `then` behind each of them. */
export function countingStatements(then: string): Patch {
  const find = "connection.pragma('synchronous = NORMAL')"
  return {
    file: 'src/store/sqlite/file/open.ts',
    find,
    replace: `
      const { exec, prepare } = connection
      let count = 0
      const counted = (run) => (...values) => {
        const result = run(...values)
        count++
        ${then}
        return result
      }
      connection.exec = counted(exec.bind(connection))
      connection.prepare = (sql) => {
        const statement = prepare.call(connection, sql)
        if (!statement.readonly)
          for (const name of ['run', 'get', 'all']) statement[name] = counted(statement[name].bind(statement))
        return statement
      }
      ${find}
    `,
  }
}

/** Has each statement leave a line, by which they are counted. */
export const TELLING_STATEMENTS: Patch = countingStatements("console.error('statement')")

export function statementsTold(stderr: string): number {
  return stderr.match(/^statement$/gm)?.length ?? 0
}
