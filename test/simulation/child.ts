import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { text } from 'node:stream/consumers'

/**
 * Runs a script in a process of its own and returns what it prints, which is JSON. `env` stands beside our own
 * environment. Throws where the script breaks down.
 */
export async function runChild<T>(
  script: string,
  values: readonly string[],
  env: Record<string, string> = {},
): Promise<T> {
  const child = spawn(process.execPath, [script, ...values], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output, complaints, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  if (code !== 0) throw new Error(`a process of the simulation broke down (${code}): ${complaints}`)
  return JSON.parse(output) as T
}
