import { spawn } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { text } from 'node:stream/consumers'

/** Runs a script in a process of its own, which reads JSON and prints JSON. Throws where the script breaks down. */
export async function runChild<T>(script: string, task: unknown): Promise<T> {
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.end(JSON.stringify(task))
  const [output, complaints, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  if (code !== 0) throw new Error(`a process of the simulation broke down (${code}): ${complaints}`)
  return JSON.parse(output) as T
}

/** What such a script is to do. */
export async function readTask<T>(): Promise<T> {
  return JSON.parse(await text(process.stdin)) as T
}
