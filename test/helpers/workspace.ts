import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { atEndOfFile } from './at-end-of-file.ts'
import { type Place, startInProcess } from './in-process.ts'
import { type Ended, logLines, type Running, type StartOptions, startProgram } from './processes.ts'

export interface OrganizationSettings {
  id: string
  name: string
  token?: string
  tokenFile?: string
  [key: string]: unknown
}

/** What is of this process means nothing in a process of its own. */
export type RunOptions = Partial<StartOptions> & Pick<Place, 'clock' | 'stdin' | 'columns'>

export interface Settings {
  baseUrl: string
  organizations: readonly OrganizationSettings[]
  [key: string]: unknown
}

/** How the configuration names an environment variable. */
export function variable(name: string): string {
  return `$\{${name}}`
}

/** An organization with a token that no chance text holds. */
export function organization(name: string, number: number, more: object = {}): OrganizationSettings {
  const id = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
  return { id, name, token: `${number}|Secret-of-${name}-x7Qp93LmZt5VbRw`, ...more }
}

export type Workspace = ReturnType<typeof createWorkspace>

/** A folder with a configuration, where commands are typed. `database`: the name of the mirror's file. */
export function createWorkspace(settings?: Settings, database = 'mirror.db') {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'admin-mirror-cli-'))
  const file = (name: string) => path.join(folder, name)
  const mirror = file(database)
  const tokens = new Set<string>()
  /** Where tokens showed, with what stood around them. */
  const leaks: ReturnType<typeof leaksOf> = []
  /** How many commands run in this process. */
  let runningHere = 0

  /** Writes the configuration; the settings come on top of those that suit a test. */
  function configure({ baseUrl, organizations, ...more }: Settings): void {
    for (const { token } of organizations) if (token !== undefined) tokens.add(token)
    const config = {
      api: { baseUrl },
      retry: { attempts: 4, minDelay: '1ms', maxDelay: '2ms' },
      collections: { establishments: false },
      database,
      organizations,
      ...more,
    }
    // JSON is YAML, too.
    fs.writeFileSync(file('admin-mirror.yaml'), JSON.stringify(config, null, 2))
  }

  function placed(options: RunOptions) {
    return {
      cwd: folder,
      ...options,
      env: { ADMIN_MIRROR_CONFIG: file('admin-mirror.yaml'), ...options.env },
    }
  }

  /**
   * Starts a command. When it ends, its output, the mirror and all files beside it are searched for every token that the
   * configuration ever named; the tests of the file fail where one shows.
   */
  function start(args: readonly string[], options: Partial<StartOptions> = {}): Running {
    const running = startProgram(args, placed(options))
    return { ...running, ended: running.ended.then(checked) }
  }

  /** The same in this process, which takes less time; its mirror has one process then, however many commands run. */
  function startHere(args: readonly string[], options: RunOptions = {}): Running {
    const running = startInProcess(args, placed(options))
    runningHere++
    const ended = running.ended.finally(() => runningHere--)
    return { ...running, ended: ended.then(checked) }
  }

  /** Runs a command to its end: in this process, or where options are for Node or name a program that starts it, in a process of its own. */
  async function run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const isForNode = Object.keys(options.env ?? {}).some((name) => name.startsWith('NODE_'))
    const ownProcess = isForNode || options.through !== undefined
    return ownProcess ? start(args, options).ended : startHere(args, options).ended
  }

  /** Without the option at the end of each command that is proposed: it names a folder of chance. */
  const shown = (text: string) => text.replaceAll(` --config ${file('admin-mirror.yaml')}`, '')

  function checked({ stdout, stderr, ...ended }: Ended): Ended {
    // While this process has the mirror open, closing another handle of it would drop SQLite's locks; the last one to end looks.
    const files = runningHere > 0 ? [] : databaseFiles(folder)
    leaks.push(...leaksOf(tokens, [stdout, stderr, ...files]))
    return { ...ended, stdout: shown(stdout), stderr: shown(stderr), logs: logLines(shown(stderr)) }
  }

  /** A token that does not stand in the configuration, to be looked for, too. */
  function secret(token: string): string {
    tokens.add(token)
    return token
  }

  function connected<T>(readonly: boolean, task: (connection: Database.Database) => T): T {
    const connection = new Database(mirror, { readonly })
    try {
      return task(connection)
    } finally {
      connection.close()
    }
  }

  /** Rows of the mirror as it stands. */
  function rows<T = Record<string, unknown>>(sql: string): T[] {
    return connected(true, (connection) => connection.prepare(sql).all() as T[])
  }

  /** The one value of the one row. */
  const value = (sql: string): unknown => Object.values(rows(sql)[0] ?? {})[0]

  /** Changes the mirror behind the program's back. */
  const change = (sql: string) => connected(false, (connection) => void connection.exec(sql))

  if (settings) configure(settings)
  atEndOfFile(() => {
    fs.rmSync(folder, { recursive: true, force: true })
    expect(leaks).toEqual([])
  })
  return { folder, mirror, file, configure, start, startHere, run, leaks, secret, rows, value, change }
}

/** The mirror, its -wal and -shm, and whatever else lies beside them, byte by byte. */
function databaseFiles(folder: string): string[] {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.includes('.db'))
    .map(({ name }) => fs.readFileSync(path.join(folder, name), 'latin1'))
}

/** Where a token shows first: whole, encoded as in an address, or cut short. */
export function leaksOf(
  tokens: Iterable<string>,
  texts: readonly string[],
): { token: string; shown: string }[] {
  return [...tokens].flatMap((token) => {
    const needles = [token, encodeURIComponent(token)].map((one) => RegExp.escape(one.slice(0, SHORTEST)))
    const pattern = new RegExp(needles.join('|'), 'i')
    for (const text of texts) {
      const at = text.search(pattern)
      if (at !== -1) return [{ token, shown: JSON.stringify(text.slice(Math.max(0, at - 100), at + 60)) }]
    }
    return []
  })
}

/** So much of a token is a part of the secret, and found nowhere by chance. */
const SHORTEST = 14
