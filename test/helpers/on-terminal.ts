import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { BIN, LOCKED_NODE } from './processes.ts'
import type { Workspace } from './workspace.ts'

/** util-linux's way to run a command on a terminal of its own. */
const SCRIPT = '/usr/bin/script'

export const hasTerminal = fs.existsSync(SCRIPT)

/** All that a command writes on a terminal, to both of its outputs; without colors. */
export function onTerminal(
  command: readonly string[],
  workspace: Workspace,
  term = 'xterm',
): Promise<string> {
  const words = [LOCKED_NODE, BIN, ...command]
  const line = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NO_COLOR: '1',
    TERM: term,
    ADMIN_MIRROR_CONFIG: workspace.file('admin-mirror.yaml'),
  }
  return new Promise((resolve, reject) => {
    const options = { cwd: workspace.folder, env, maxBuffer: 100_000_000 }
    const child = execFile(SCRIPT, ['-qec', line, '/dev/null'], options, (error, stdout) => {
      if (error) reject(new Error(`${line}: ${stdout}`, { cause: error }))
      else resolve(stdout)
    })
    child.stdin?.end()
  })
}
