import { execFileSync } from 'node:child_process'

/** Another SQLite than the one we bring, as analysts have it. */
export interface OutsideReader {
  name: string
  /** The rows, each value as JSON can hold it. */
  read(file: string, sql: string): Record<string, unknown>[]
}

const PYTHON = `
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in connection.execute(sys.argv[2])]))
`

/** Those that are installed here: the sqlite3 shell, and Python's module. */
export const OUTSIDE_READERS: readonly OutsideReader[] = [
  {
    name: 'the sqlite3 shell',
    read: (file: string, sql: string) => ask('sqlite3', ['-json', file, sql]),
  },
  {
    name: "Python's sqlite3",
    read: (file: string, sql: string) => ask('python3', ['-c', PYTHON, file, sql]),
  },
].filter(isInstalled)

function isInstalled({ read }: OutsideReader): boolean {
  try {
    return read(':memory:', 'SELECT 1 AS one').length === 1
  } catch {
    return false
  }
}

/** The shell prints nothing for no rows. */
function ask(program: string, options: string[]): Record<string, unknown>[] {
  const text = execFileSync(program, options, { encoding: 'utf8' }).trim()
  return text === '' ? [] : JSON.parse(text)
}
