import { spawnSync } from 'node:child_process'

/** Runs a program of the system; whether it ended well, or is there at all. */
export function runs(program: string, ...options: string[]): boolean {
  return spawnSync(program, options).status === 0
}

/** The same, where the test cannot go on without it. */
export function mustRun(program: string, ...options: string[]): void {
  const { status, stderr } = spawnSync(program, options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${options.join(' ')}: ${stderr}`)
}

export const IS_ROOT = process.getuid?.() === 0
