import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const urlOf = (file: string) =>
  JSON.stringify(new URL(`../../src/store/sqlite/${file}`, import.meta.url).href)

const SCRIPT = `
const { openForReading, openForWriting } = await import(${urlOf('open.ts')})
const { createLockWait } = await import(${urlOf('runner.ts')})
const { readFileFacts } = await import(${urlOf('read.ts')})
const { setTimeout: sleep } = await import('node:timers/promises')
const patience = { elapsed: performance.now.bind(performance), sleep, signal: new AbortController().signal }
const [, file, task] = process.argv
try {
  if (task === 'read') readFileFacts(openForReading(file), () => null, 0)
  else (await createLockWait(file, patience)(() => openForWriting(file))).close()
  console.log('done')
} catch (error) {
  console.log(error.name + ': ' + error.message)
}
`

/** A user who owns nothing: for root no folder is read-only. */
export const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

/** Whether opening can be tried as somebody who may not write everywhere, and who can read the program: not its mutated copy. */
export const CAN_BE_REFUSED = process.platform === 'linux' && process.env.MUTATION_TESTS === undefined

/** Opens the mirror for writing, or reads it, in a process of its own; what came of it in words: `done`, or the error. */
export async function openElsewhere(
  file: string,
  task: 'write' | 'read' = 'write',
  user: { uid?: number; gid?: number } = {},
): Promise<string> {
  const args = ['--input-type=module', '-e', SCRIPT, file, task]
  return (await promisify(execFile)(process.execPath, args, user)).stdout.trim()
}
